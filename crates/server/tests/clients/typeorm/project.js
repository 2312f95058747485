// TypeORM: synchronize, twice and after a change, migrations it generates and reverts, repositories, transactions.
require('reflect-metadata')
const path = require('node:path')
const { connection, equal, rejects, run, step } = require(path.join(__dirname, '..', 'steps.js'))
const { DataSource, EntitySchema, In, IsNull, ILike, MoreThan, Raw } = require('typeorm')

function entities(second) {
  const Author = new EntitySchema({
    name: 'Author', tableName: 'author',
    columns: {
      id: { type: 'int', primary: true, generated: true },
      name: { type: 'varchar', length: 40, unique: true },
      mood: { type: 'enum', enum: second ? ['glad', 'sad', 'calm'] : ['glad', 'sad'], default: 'glad' },
      born: { type: 'date', nullable: true },
      made: { type: 'timestamptz', createDate: true },
      changed: { type: 'timestamptz', updateDate: true },
      gone: { type: 'timestamptz', deleteDate: true, nullable: true },
      ...(second ? { score: { type: 'int', default: 7 }, note: { type: 'text', nullable: true, comment: 'anything' } } : {}),
    },
    relations: { books: { type: 'one-to-many', target: 'Book', inverseSide: 'author' } },
  })
  const Book = new EntitySchema({
    name: 'Book', tableName: 'book',
    columns: {
      id: { type: 'uuid', primary: true, generated: 'uuid' },
      title: { type: 'varchar', comment: 'as printed' },
      price: { type: 'numeric', precision: 9, scale: 2, default: 0 },
      pages: { type: 'int', nullable: second, ...(second ? { default: 1 } : {}) },
      data: { type: 'jsonb', default: {} },
      words: { type: 'text', array: true, default: '{}' },
      numbers: { type: 'int', array: true, nullable: true },
      cover: { type: 'bytea', nullable: true },
      x: { type: 'double precision', nullable: true },
      hour: { type: 'time', nullable: true },
      span: { type: 'interval', nullable: true },
      ok: { type: 'boolean', default: true },
      code: { type: 'char', length: 4, nullable: true },
      version: { type: 'int', version: true },
    },
    relations: {
      author: { type: 'many-to-one', target: 'Author', inverseSide: 'books', onDelete: 'CASCADE', joinColumn: { name: 'author_id' } },
      tags: { type: 'many-to-many', target: 'Tag', joinTable: { name: 'book_tags' }, cascade: true },
    },
    indices: [{ columns: ['title', 'pages'], name: 'title_pages' }, ...(second ? [{ columns: ['title'], name: 'ok_titles', unique: true, where: '"ok" AND price > 5' }] : [])],
    checks: [{ name: 'not_negative', expression: 'price >= 0' }],
  })
  const Tag = new EntitySchema({
    name: 'Tag', tableName: 'tag', columns: { id: { type: 'bigint', primary: true, generated: 'identity', generatedIdentity: 'ALWAYS' }, name: { type: 'varchar' } }, uniques: [{ columns: ['name'], name: 'one_name' }] })
  const Sum = new EntitySchema({
    name: 'Sum', type: 'view', tableName: 'sums', expression: 'SELECT author_id AS author, sum(price) AS total FROM book GROUP BY author_id',
    columns: { author: { type: 'int' }, total: { type: 'numeric' } } })
  return [Author, Book, Tag, Sum]
}
const source = (second, more = {}) => new DataSource({
  type: 'postgres', host: connection.host, port: connection.port, username: connection.user, password: connection.password,
  database: connection.database, entities: entities(second), uuidExtension: 'pgcrypto', installExtensions: false, ...more })
const pending = async s => (await s.driver.createSchemaBuilder().log()).upQueries.map(q => q.query)
let db = source(false)

step('synchronize', async () => {
  await db.initialize()
  await db.synchronize()
})
step('nothing is left to synchronize', async () => equal(await pending(db), []))
step('insert', async () => {
  const [ann, bob] = await db.getRepository('Author').save([{ name: 'Ann', born: '1970-02-03' }, { name: 'Bob', mood: 'sad' }])
  equal([ann.id, bob.mood, ann.mood], [1, 'sad', 'glad'])
  const tags = await db.getRepository('Tag').save([{ name: 'new' }, { name: 'old' }])
  const books = Array.from({ length: 10 }, (_, i) => ({
    title: `b${i}`, price: i, pages: 100 + i, data: { n: i, deep: { list: [i] } }, words: ['x', `w ${i}`], numbers: [i, 1], cover: Buffer.from([0, 255]),
    x: 1.5, hour: '03:04:05', span: '1 day', code: 'abcd', author: i % 2 ? ann : bob, tags: [tags[i % 2]] }))
  await db.getRepository('Book').save(books)
  equal(books[0].version, 1)
})
step('find', async () => {
  const books = db.getRepository('Book')
  equal(await books.count(), 10)
  const found = await books.find({ relations: { author: true, tags: true }, where: { author: { name: 'Ann' }, pages: MoreThan(103) }, order: { pages: 'DESC' }, take: 2, skip: 1 })
  equal(found.map(b => [b.title, b.author.name, b.tags[0].name]), [['b7', 'Ann', 'old'], ['b5', 'Ann', 'old']])
  const b = await books.findOneBy({ title: ILike('B3') })
  equal([b.price, b.data.deep.list, b.words, b.numbers, b.cover.length, b.hour, b.span.days, b.code], ['3.00', [3], ['x', 'w 3'], [3, 1], 2, '03:04:05', 1, 'abcd'])
  equal((await books.findBy({ data: Raw(c => `${c} @> '{"n": 4}'`) })).length, 1)
  equal((await books.findBy({ title: In(['b1', 'b2']), author: { gone: IsNull() } })).length, 2)
  equal((await db.getRepository('Sum').find({ order: { author: 'ASC' } })).map(s => s.total), ['25.00', '20.00'])
})
step('query builder', async () => {
  const q = db.getRepository('Author').createQueryBuilder('a')
  equal(await q.leftJoin('a.books', 'b').select('a.name', 'n').addSelect('count(b.id)', 'c').groupBy('a.id').having('count(*) > 1').orderBy('a.id').getRawMany(), [{ n: 'Ann', c: '5' }, { n: 'Bob', c: '5' }])
  equal((await db.getRepository('Author').createQueryBuilder('a').leftJoinAndSelect('a.books', 'b').orderBy('b.pages', 'DESC', 'NULLS LAST').take(1).getMany())[0].books.length, 5)
  equal(await db.getRepository('Author').createQueryBuilder('a').leftJoinAndMapOne('a.last', 'Book', 'b', 'b.author_id = a.id AND b.pages = 109').where(c => 'a.id IN ' + c.subQuery().select('k.author_id').from('Book', 'k').getQuery()).getCount(), 2)
  equal((await db.createQueryBuilder().insert().into('Tag').values([{ name: 'new' }, { name: 'rare' }]).orIgnore().returning('*').execute()).raw.length, 1)
  equal((await db.getRepository('Author').upsert({ name: 'Ann', mood: 'sad' }, ['name'])).identifiers[0].id, 1)
  equal((await db.createQueryBuilder().update('Book').set({ price: () => 'price + 1' }).where('pages > :n', { n: 107 }).returning('title').execute()).affected, 2)
  let n = 0
  for await (const _ of await db.getRepository('Book').createQueryBuilder('b').stream()) n++
  equal(n, 10)
})
step('remove and versions', async () => {
  const authors = db.getRepository('Author')
  const cy = await authors.save({ name: 'Cy' })
  await authors.softRemove(cy)
  equal([await authors.count(), await authors.count({ withDeleted: true })], [2, 3])
  await authors.restore(cy.id)
  await authors.remove(cy)
  const b = await db.getRepository('Book').findOneBy({ title: 'b0' })
  b.pages = 1
  equal((await db.getRepository('Book').save(b)).version, 2)
})
step('transactions', async () => {
  await rejects(db.transaction(async m => { await m.delete('Book', {}); throw new Error('no') }), /no/)
  await db.transaction('REPEATABLE READ', async m => {
    await m.findOne('Author', { where: { name: 'Ann' }, lock: { mode: 'pessimistic_write', onLocked: 'skip_locked' } })
    await m.findOne('Author', { where: { name: 'Ann' }, lock: { mode: 'for_no_key_update' } })
    await rejects(m.transaction(async i => { await i.insert('Book', { title: 'x', price: -1, pages: 1 }) }), { code: '23514', constraint: 'not_negative' })
    await m.update('Author', { name: 'Bob' }, { born: '1980-01-01' })
  })
  equal(await db.getRepository('Book').count(), 10)
  equal((await db.getRepository('Author').findOneBy({ name: 'Bob' })).born, '1980-01-01')
  await rejects(db.getRepository('Author').insert({ name: 'Ann' }), { code: '23505' })
  await rejects(db.query('INSERT INTO book (title, pages, version, author_id) VALUES ($1, 1, 1, 99)', ['x']), { code: '23503' })
})
step('synchronize a change', async () => {
  await db.destroy()
  db = source(true)
  await db.initialize()
  await db.synchronize()
  equal((await db.getRepository('Author').findOneBy({ name: 'Ann' })).score, 7)
  await db.getRepository('Author').update({ name: 'Bob' }, { mood: 'calm' })
})
step('nothing is left of the change', async () => equal(await pending(db), []))
step('a migration and its revert', async () => {
  await db.destroy()
  class More1700000000000 {
    name = 'More1700000000000'
    async up(r) {
      const { Table, TableColumn, TableForeignKey, TableIndex } = require('typeorm')
      await r.createTable(new Table({ name: 'loan', columns: [{ name: 'id', type: 'bigserial', isPrimary: true }, { name: 'tag_id', type: 'bigint' }, { name: 'at', type: 'timestamp', default: 'now()' }] }), true)
      await r.createForeignKey('loan', new TableForeignKey({ name: 'of_tag', columnNames: ['tag_id'], referencedTableName: 'tag', referencedColumnNames: ['id'], onDelete: 'CASCADE', deferrable: 'INITIALLY DEFERRED' }))
      await r.createIndex('loan', new TableIndex({ name: 'by_at', columnNames: ['at'] }))
      await r.addColumn('loan', new TableColumn({ name: 'n', type: 'smallint', isNullable: true }))
      await r.renameColumn('loan', 'n', 'm')
      await r.changeColumn('loan', 'm', new TableColumn({ name: 'm', type: 'smallint', isNullable: false, default: 3, isUnique: true }))
      equal((await r.getTable('loan')).columns.map(c => [c.name, c.type, c.isNullable]), [['id', 'bigint', false], ['tag_id', 'bigint', false], ['at', 'timestamp without time zone', false], ['m', 'smallint', false]])
    }
    async down(r) { await r.dropTable('loan') }
  }
  db = source(true, { migrations: [More1700000000000] })
  await db.initialize()
  equal((await db.runMigrations({ transaction: 'each' })).length, 1)
  equal(await db.createQueryRunner().hasTable('loan'), true)
  await db.undoLastMigration()
  equal(await db.createQueryRunner().hasTable('loan'), false)
})
step('drop', async () => {
  await db.dropDatabase()
  equal((await db.query("SELECT count(*)::int AS n FROM pg_tables WHERE schemaname = 'public'")), [{ n: 0 }])
  await db.destroy()
})
run()
