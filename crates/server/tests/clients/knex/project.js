// knex: the schema builder, migrations in batches with their lock, queries, and back to nothing.
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { connection, equal, rejects, run, step } = require(path.join(__dirname, '..', 'steps.js'))

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'knex-'))
const knex = require('knex')({ client: 'pg', connection, pool: { min: 0, max: 3 }, migrations: { directory } })

fs.writeFileSync(path.join(directory, '1_first.js'), `
exports.up = async knex => {
  await knex.schema.createTable('author', t => {
    t.increments('id')
    t.string('name', 40).notNullable().index()
    t.string('email').unique()
    t.enu('mood', ['glad', 'sad']).defaultTo('glad')
    t.enu('kind', ['a', 'b'], { useNative: true, enumName: 'kinds' }).defaultTo('a')
    t.timestamps(true, true)
  })
  await knex.schema.createTable('book', t => {
    t.bigIncrements('id').primary()
    t.integer('author_id').unsigned().references('id').inTable('author').onDelete('CASCADE').onUpdate('CASCADE')
    t.string('title').notNullable().comment('as printed')
    t.decimal('price', 9, 2).defaultTo(0)
    t.uuid('uid').defaultTo(knex.fn.uuid()).unique()
    t.jsonb('data').defaultTo('{}')
    t.specificType('words', 'text[]')
    t.boolean('ok').defaultTo(true)
    t.date('day'); t.time('hour'); t.float('x'); t.double('y'); t.binary('b'); t.text('note')
    t.index(['title', 'price'], 'title_price')
    t.check('?? >= 0', ['price'], 'not_negative')
    t.comment('all books')
  })
}
exports.down = async knex => {
  await knex.schema.dropTable('book')
  await knex.schema.dropTable('author')
  await knex.raw('DROP TYPE kinds')
}`)
fs.writeFileSync(path.join(directory, '2_second.js'), `
exports.up = async knex => {
  await knex.schema.alterTable('book', t => {
    t.integer('pages').notNullable().defaultTo(1)
    t.string('title', 100).nullable().alter()
    t.renameColumn('note', 'remark')
    t.dropColumn('x')
    t.dropForeign('author_id')
    t.foreign('author_id', 'by').references('author.id').onDelete('SET NULL').deferrable('deferred')
    t.dropUnique(['uid'])
    t.unique(['title', 'author_id'], { indexName: 'title_author', deferrable: 'immediate' })
    t.setNullable('price')
  })
  await knex.schema.alterTable('book', t => { t.dropIndex([], 'title_price'); t.index(knex.raw('lower(title)'), 'lower_title') })
  await knex.schema.alterTable('author', t => { t.unique('name', { indexName: 'glad_name', predicate: knex.whereNotNull('email'), useConstraint: false }) })
  await knex.schema.createView('cheap', v => { v.columns(['id', 'title']); v.as(knex('book').select('id', 'title').where('price', '<', 3)) })
  await knex.schema.createMaterializedView('sums', v => { v.as(knex('book').select('author_id').sum('price as total').groupBy('author_id')) })
  await knex.schema.renameTable('author', 'writer')
}
exports.down = async knex => {
  await knex.schema.renameTable('writer', 'author')
  await knex.schema.dropMaterializedView('sums')
  await knex.schema.dropView('cheap')
  await knex.schema.alterTable('author', t => { t.dropIndex([], 'glad_name') })
  await knex.schema.alterTable('book', t => {
    t.dropIndex([], 'lower_title')
    t.dropUnique([], 'title_author')
    t.dropForeign([], 'by')
    t.renameColumn('remark', 'note')
    t.dropColumn('pages')
    t.dropNullable('title')
  })
}`)

step('the first migration', async () => {
  equal((await knex.migrate.up())[1], ['1_first.js'])
  equal(await knex.schema.hasTable('book'), true)
  equal(await knex.schema.hasColumn('book', 'uid'), true)
})
step('column info', async () => {
  const info = await knex('book').columnInfo()
  equal(info.price, { type: 'numeric', maxLength: null, nullable: true, defaultValue: "'0'::numeric" })
  equal(info.title, { type: 'character varying', maxLength: 255, nullable: false, defaultValue: null })
  equal([info.words.type, info.id.type, info.data.type, info.ok.type], ['ARRAY', 'bigint', 'jsonb', 'boolean'])
})
step('insert', async () => {
  equal(await knex('author').insert([{ name: 'Ann', email: 'a@b' }, { name: 'Bob', mood: 'sad', kind: 'b' }], ['id', 'kind']),
    [{ id: 1, kind: 'a' }, { id: 2, kind: 'b' }])
  const rows = Array.from({ length: 50 }, (_, i) => ({
    author_id: 1 + i % 2, title: `b${i}`, price: i, data: { n: i, deep: { list: [i] } }, words: ['x', `${i}`], day: '2024-01-02',
    hour: '03:04:05', y: 1.5, b: Buffer.from([0, 255]) }))
  await knex.batchInsert('book', rows, 20)
  equal(await knex('book').count({ n: '*' }).first(), { n: '50' })
})
step('queries', async () => {
  equal(await knex('author as a').join('book as b', 'b.author_id', 'a.id').groupBy('a.name').orderBy('a.name')
    .select('a.name').sum({ s: 'b.price' }).havingRaw('count(*) > ?', [3]), [{ name: 'Ann', s: '600.00' }, { name: 'Bob', s: '625.00' }])
  equal((await knex('book').whereJsonPath('data', '$.n', '=', 3).first()).title, 'b3')
  equal((await knex('book').whereJsonSupersetOf('data', { n: 4 }).select('title'))[0].title, 'b4')
  equal((await knex('book').jsonExtract('data', '$.deep.list[0]', 'v').where('title', 'b5').first()).v, 5)
  equal((await knex.with('w', knex('book').where('price', '>', 47)).select('*').from('w').orderBy('id')).length, 2)
  equal((await knex('book').distinctOn('author_id').orderBy([{ column: 'author_id' }, { column: 'price', order: 'desc', nulls: 'last' }])).map(r => r.title), ['b48', 'b49'])
  equal((await knex('book').whereILike('title', 'B1%').whereBetween('price', [10, 12]).pluck('title')).length, 3)
  equal((await knex('book').rowNumber('r', 'id', 'author_id').orderBy('id').limit(3)).map(r => r.r), ['1', '1', '2'])
  equal((await knex.withRecursive('t', ['n'], qb => { qb.select(knex.raw('1')).from(knex.raw('(select 1) x')).unionAll(q => q.select(knex.raw('n + 1')).from('t').where('n', '<', 5)) }).sum('n as s').from('t'))[0].s, '15')
})
step('upsert, update, delete', async () => {
  equal(await knex('author').insert({ name: 'Ann!', email: 'a@b' }).onConflict('email').merge(['name']).returning('*').then(r => r[0].name), 'Ann!')
  equal((await knex('author').insert({ name: 'no', email: 'a@b' }).onConflict('email').ignore()).rowCount, 0)
  equal(await knex('book').where({ title: 'b1' }).increment('price', 5), 1)
  equal(await knex('book').where('price', '>', 45).del(['title']).then(r => r.length), 4)
  equal(await knex('book').updateFrom('author').where('author.id', knex.ref('book.author_id')).update({ title: knex.raw('book.title || author.name') }), 46)
})
step('transactions', async () => {
  await rejects(knex.transaction(async t => { await t('book').del(); throw new Error('no') }), /no/)
  await knex.transaction(async t => {
    await t('book').where('id', 1).forUpdate().skipLocked()
    await rejects(t.transaction(s => s('book').insert({ title: 'x', price: -1 })), { code: '23514', constraint: 'not_negative' })
    await t('book').where('id', 1).update({ ok: false })
  }, { isolationLevel: 'repeatable read' })
  equal(await knex('book').count('* as n').where('ok', false).first(), { n: '1' })
  await rejects(knex('book').insert({ title: 'x', author_id: 99 }), { code: '23503' })
  await rejects(knex('author').insert({ name: 'x', mood: 'calm' }), { code: '23514' })
})
step('a stream', async () => {
  let n = 0
  for await (const _ of knex('book').select().stream({ highWaterMark: 5 })) n++
  equal(n, 46)
})
step('the second migration', async () => {
  equal((await knex.migrate.latest())[1], ['2_second.js'])
  equal((await knex('cheap').count('* as n').first()).n, '2')
  await knex.schema.refreshMaterializedView('sums')
  equal((await knex('sums').orderBy('author_id'))[0].author_id, 1)
})
step('back', async () => {
  equal((await knex.migrate.rollback())[1], ['2_second.js'])
  equal((await knex.migrate.rollback(undefined, true))[1], ['1_first.js'])
  equal(await knex.schema.hasTable('book'), false)
})
step('drop', async () => {
  await knex.schema.dropTableIfExists('knex_migrations')
  await knex.schema.dropTableIfExists('knex_migrations_lock')
  equal((await knex.raw("SELECT count(*)::int AS n FROM pg_tables WHERE schemaname = 'public'")).rows, [{ n: 0 }])
})
run()
