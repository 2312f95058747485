// Kysely: the schema builder, its migrator, queries, transactions, introspection.
const path = require('node:path')
const { connection, equal, rejects, run, step } = require(path.join(__dirname, '..', 'steps.js'))
const { Kysely, Migrator, PostgresDialect, sql } = require('kysely')
const { jsonArrayFrom, jsonObjectFrom, jsonBuildObject } = require('kysely/helpers/postgres')
const { Pool } = require('pg')
const Cursor = require('pg-cursor')

const db = new Kysely({ dialect: new PostgresDialect({ pool: new Pool({ ...connection, max: 3 }), cursor: Cursor }) })
const migrations = {
  '1_first': {
    async up(db) {
      await db.schema.createType('mood').asEnum(['glad', 'sad']).execute()
      await db.schema.createTable('author').addColumn('id', 'serial', c => c.primaryKey())
        .addColumn('name', 'varchar(40)', c => c.notNull().unique()).addColumn('mood', sql`mood`, c => c.defaultTo('glad'))
        .addColumn('made', 'timestamptz', c => c.defaultTo(sql`now()`).notNull()).execute()
      await db.schema.createTable('book').addColumn('id', 'bigint', c => c.generatedAlwaysAsIdentity().primaryKey())
        .addColumn('author_id', 'integer', c => c.references('author.id').onDelete('cascade')).addColumn('title', 'text', c => c.notNull())
        .addColumn('price', 'numeric(9, 2)').addColumn('data', 'jsonb').addColumn('words', sql`text[]`)
        .addColumn('total', 'numeric(12, 2)', c => c.generatedAlwaysAs(sql`price * 2`).stored())
        .addUniqueConstraint('title_author', ['title', 'author_id'], c => c.nullsNotDistinct())
        .addCheckConstraint('not_negative', sql`price >= 0`).execute()
      await db.schema.createIndex('by_price').on('book').columns(['price desc', 'title']).execute()
    },
    async down(db) {
      await db.schema.dropTable('book').execute()
      await db.schema.dropTable('author').execute()
      await db.schema.dropType('mood').execute()
    },
  },
  '2_second': {
    async up(db) {
      await db.schema.alterTable('book').addColumn('pages', 'integer', c => c.notNull().defaultTo(1)).addColumn('note', 'varchar(10)').execute()
      await db.schema.alterTable('book').alterColumn('title', c => c.setDataType('varchar(90)')).alterColumn('price', c => c.setDefault(5)).execute()
      await db.schema.alterTable('book').renameColumn('note', 'remark').execute()
      await db.schema.createIndex('lower_title').on('book').expression(sql`lower(title)`).execute()
      await db.schema.createIndex('unique_remark').unique().on('book').column('remark').where('remark', 'is not', null).execute()
      await db.schema.createView('cheap').orReplace().as(db.selectFrom('book').select(['id', 'title']).where('price', '<', 3)).execute()
      await db.schema.createView('sums').materialized().as(db.selectFrom('book').select(['author_id', e => e.fn.sum('price').as('total')]).groupBy('author_id')).execute()
    },
    async down(db) {
      await db.schema.dropView('sums').materialized().execute()
      await db.schema.dropView('cheap').execute()
      await db.schema.dropIndex('unique_remark').execute()
      await db.schema.dropIndex('lower_title').execute()
      await db.schema.alterTable('book').dropColumn('remark').dropColumn('pages').execute()
    },
  },
}
const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } })
const outcome = ({ error, results }) => { if (error) throw error; return results.map(r => r.status) }

step('the first migration', async () => equal(outcome(await migrator.migrateTo('1_first')), ['Success']))
step('introspection', async () => {
  const tables = await db.introspection.getTables()
  equal(tables.map(t => t.name), ['author', 'book'])
  equal(tables[1].columns.map(c => [c.name, c.dataType, c.isNullable, c.isAutoIncrementing]), [
    ['id', 'int8', false, true], ['author_id', 'int4', true, false], ['title', 'text', false, false], ['price', 'numeric', true, false],
    ['data', 'jsonb', true, false], ['words', '_text', true, false], ['total', 'numeric', true, false]])
  equal(tables[0].columns.map(c => [c.dataType, c.hasDefaultValue]), [['int4', true], ['varchar', false], ['mood', true], ['timestamptz', true]])
})
step('insert', async () => {
  equal(await db.insertInto('author').values([{ name: 'Ann' }, { name: 'Bob', mood: 'sad' }]).returning(['id', 'mood']).execute(), [{ id: 1, mood: 'glad' }, { id: 2, mood: 'sad' }])
  const r = await db.insertInto('book').values(Array.from({ length: 10 }, (_, i) => ({ author_id: 1 + i % 2, title: `b${i}`, price: i, data: { n: i }, words: ['x', `${i}`] }))).executeTakeFirst()
  equal(r.numInsertedOrUpdatedRows, 10n)
})
step('queries', async () => {
  equal(await db.selectFrom('author').select(e => ['name', jsonArrayFrom(e.selectFrom('book').select(['title', 'price']).whereRef('book.author_id', '=', 'author.id').orderBy('title').limit(2)).as('books')])
    .orderBy('name').execute(), [{ name: 'Ann', books: [{ title: 'b0', price: 0 }, { title: 'b2', price: 2 }] }, { name: 'Bob', books: [{ title: 'b1', price: 1 }, { title: 'b3', price: 3 }] }])
  equal(await db.selectFrom('book').select(e => ['title', jsonObjectFrom(e.selectFrom('author').select(['name', 'mood']).whereRef('author.id', '=', 'book.author_id')).as('author')]).where('title', '=', 'b1').executeTakeFirst(),
    { title: 'b1', author: { name: 'Bob', mood: 'sad' } })
  equal(await db.selectFrom('book').innerJoin('author', 'author.id', 'book.author_id').select(e => ['name', e.fn.sum('price').filterWhere('price', '>', 2).as('s'), e.fn.countAll().as('n')]).groupBy('name').orderBy('name').execute(),
    [{ name: 'Ann', s: '18.00', n: '5' }, { name: 'Bob', s: '24.00', n: '5' }])
  equal(await db.selectFrom('book').select(e => ['title', e.fn.agg('rank').over(o => o.partitionBy('author_id').orderBy('price', 'desc')).as('r')]).orderBy('title').limit(1).execute(), [{ title: 'b0', r: '5' }])
  equal(await db.selectFrom('book').select(e => e.ref('data', '->').key('n').as('n')).where(e => e.ref('data', '->>').key('n'), '=', '4').execute(), [{ n: 4 }])
  equal((await db.selectFrom('book').selectAll().where(e => e(e.val('3'), '=', e.fn.any('words'))).execute()).length, 1)
  equal((await db.with('w', q => q.deleteFrom('book').where('title', '=', 'b9').returningAll()).selectFrom('w').select('title').execute()), [{ title: 'b9' }])
  equal(await db.selectFrom('author').leftJoinLateral(e => e.selectFrom('book').select(['title']).whereRef('author_id', '=', 'author.id').orderBy('price', 'desc').limit(1).as('l'), j => j.onTrue()).select(['name', 'l.title']).orderBy('name').execute(),
    [{ name: 'Ann', title: 'b8' }, { name: 'Bob', title: 'b7' }])
  equal(await db.selectFrom('book').select(e => jsonBuildObject({ t: e.ref('title'), p: e.ref('total') }).as('o')).orderBy('id').limit(1).execute(), [{ o: { t: 'b0', p: 0 } }])
  equal((await db.selectFrom('book').select('title').distinctOn('author_id').orderBy('author_id').orderBy('price').execute()).length, 2)
})
step('upsert, update, merge', async () => {
  equal(await db.insertInto('author').values({ name: 'Ann' }).onConflict(c => c.column('name').doUpdateSet(e => ({ mood: e.val('sad') }))).returningAll().executeTakeFirst().then(r => r.mood), 'sad')
  equal((await db.updateTable('book').from('author').set(e => ({ title: e.fn('concat', ['book.title', 'author.name']) })).whereRef('author.id', '=', 'book.author_id').where('price', '<', 2).returning('title').execute()).map(r => r.title).sort(), ['b0Ann', 'b1Bob'])
  equal((await db.mergeInto('book').using('author', 'author.id', 'book.author_id').whenMatchedAnd('author.name', '=', 'Ann').thenUpdateSet({ price: 1 }).executeTakeFirst()).numChangedRows, 5n)
})
step('transactions', async () => {
  await rejects(db.transaction().execute(async t => { await t.deleteFrom('book').execute(); throw new Error('no') }), /no/)
  await db.transaction().setIsolationLevel('repeatable read').execute(async t => { await t.selectFrom('book').selectAll().forUpdate().skipLocked().execute() })
  const t = await db.startTransaction().execute()
  const s = await t.savepoint('s').execute()
  await rejects(s.insertInto('book').values({ title: 'x', price: -1 }).execute(), { code: '23514' })
  await s.rollbackToSavepoint('s').execute()
  await t.commit().execute()
  equal((await db.selectFrom('book').select(e => e.fn.countAll().as('n')).executeTakeFirst()).n, '9')
})
step('a stream and explain', async () => {
  let n = 0
  for await (const _ of db.selectFrom('book').selectAll().stream(2)) n++
  equal(n, 9)
  equal((await db.selectFrom('book').selectAll().explain('json')).length, 1)
})
step('the second migration', async () => equal(outcome(await migrator.migrateToLatest()), ['Success']))
step('back', async () => {
  equal(outcome(await migrator.migrateDown()), ['Success'])
  equal(outcome(await migrator.migrateDown()), ['Success'])
  equal((await db.introspection.getTables()).map(t => t.name), [])
})
step('drop', async () => {
  await db.schema.dropTable('kysely_migration').execute()
  await db.schema.dropTable('kysely_migration_lock').ifExists().execute()
})
run()
