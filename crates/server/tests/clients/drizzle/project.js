// Drizzle: drizzle-kit's push and pull, generated migrations, queries and relations, transactions.
const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { connection, equal, rejects, run, step } = require(path.join(__dirname, '..', 'steps.js'))
const { drizzle } = require('drizzle-orm/node-postgres')
const { migrate } = require('drizzle-orm/node-postgres/migrator')
const { and, arrayContains, count, desc, eq, exists, gt, inArray, sql, sum } = require('drizzle-orm')
const { Pool } = require('pg')

const kit = path.join(path.dirname(require.resolve('drizzle-kit')), 'bin.cjs')
const home = fs.mkdtempSync(path.join(__dirname, 'work-')) // beside the packages, which its files ask for
for (const file of ['first.js', 'second.js']) fs.copyFileSync(path.join(__dirname, file), path.join(home, file))
const schema = require('./first.js')
const { authors, books } = schema
const pool = new Pool({ ...connection, max: 3 })
const db = drizzle(pool, { schema })

// The command in a directory of its own, with the tables of the given file.
function drizzleKit(command, file, ...more) {
  const config = path.join(home, 'drizzle.config.js')
  fs.writeFileSync(config, `module.exports = ${JSON.stringify({ dialect: 'postgresql', schema: `./${file}`, out: './out',
    dbCredentials: { ...connection, ssl: false }, schemaFilter: ['public'] })}`)
  const output = execFileSync('node', [kit, command, ...more], { cwd: home, stdio: 'pipe', encoding: 'utf8', timeout: 60000 })
  if (/error/i.test(output)) throw new Error(output)
  return output
}

step('push', async () => {
  drizzleKit('push', 'first.js', '--force')
  equal((await pool.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")).rows.map(r => r.tablename), ['authors', 'books'])
})
step('push again changes nothing', async () => {
  equal(drizzleKit('push', 'first.js', '--force').includes('No changes detected'), true)
})
step('insert', async () => {
  equal(await db.insert(authors).values([{ name: 'Ann' }, { name: 'Bob', mood: 'sad' }]).returning({ id: authors.id, mood: authors.mood }), [{ id: 1, mood: 'glad' }, { id: 2, mood: 'sad' }])
  await db.insert(books).values(Array.from({ length: 10 }, (_, i) => ({ title: `b${i}`, authorId: 1 + i % 2, price: `${i}`, data: { n: i }, words: ['x', `${i}`], pages: 100 + i, day: '2024-01-02' })))
  equal(await db.$count(books), 10)
})
step('queries', async () => {
  equal((await db.select({ name: authors.name, n: count(), s: sum(books.price) }).from(authors).leftJoin(books, eq(books.authorId, authors.id)).groupBy(authors.id).orderBy(authors.name)),
    [{ name: 'Ann', n: 5, s: '20.00' }, { name: 'Bob', n: 5, s: '25.00' }])
  equal((await db.select().from(books).where(and(gt(books.pages, 105), arrayContains(books.words, ['x']), sql`${books.data}->>'n' = '7'`)))[0].words, ['x', '7'])
  equal((await db.select().from(authors).where(exists(db.select().from(books).where(and(eq(books.authorId, authors.id), eq(books.title, 'b4')))))).map(a => a.name), ['Ann'])
  const w = db.$with('w').as(db.select().from(books).where(inArray(books.title, ['b1', 'b2'])))
  equal((await db.with(w).select().from(w).orderBy(desc(w.pages))).map(b => b.title), ['b2', 'b1'])
})
step('relations', async () => {
  const a = await db.query.authors.findMany({ with: { books: { columns: { title: true, data: true }, orderBy: desc(books.pages), limit: 2 } }, orderBy: authors.name })
  equal(a.map(x => x.books), [[{ title: 'b8', data: { n: 8 } }, { title: 'b6', data: { n: 6 } }], [{ title: 'b9', data: { n: 9 } }, { title: 'b7', data: { n: 7 } }]])
  equal((await db.query.books.findFirst({ with: { author: true }, where: eq(books.title, 'b3') })).author.name, 'Bob')
})
step('upsert, update, delete', async () => {
  equal((await db.insert(authors).values({ name: 'Ann' }).onConflictDoUpdate({ target: authors.name, set: { mood: 'sad' } }).returning())[0].mood, 'sad')
  equal((await db.update(books).set({ price: sql`${books.price} + 1` }).where(eq(books.title, 'b1')).returning())[0].price, '2.00')
  equal((await db.delete(books).where(eq(books.title, 'b9'))).rowCount, 1)
})
step('transactions', async () => {
  await rejects(db.transaction(async t => { await t.delete(books); throw new Error('no') }), /no/)
  await db.transaction(async t => {
    await t.transaction(async s => { await s.delete(books); s.rollback() }).catch(() => {})
    await t.select().from(books).for('update', { of: books, skipLocked: true })
  }, { isolationLevel: 'repeatable read', accessMode: 'read write' })
  equal(await db.$count(books), 9)
})
step('push a change', async () => {
  drizzleKit('push', 'second.js', '--force')
  equal((await pool.query('SELECT rating FROM books LIMIT 1')).rows[0], { rating: 5 })
  equal(drizzleKit('push', 'second.js', '--force').includes('No changes detected'), true)
})
step('pull', async () => {
  drizzleKit('pull', 'second.js')
  const text = fs.readFileSync(path.join(home, 'out', 'schema.ts'), 'utf8')
  for (const piece of ['pgTable("books"', 'varchar({ length: 80 })', 'numeric({ precision: 9, scale', 'foreignKey({', 'pgEnum("mood"', 'text().array()', 'check("pages_positive"']) {
    if (!text.includes(piece)) throw new Error(`no ${piece} in ${text}`)
  }
})
step('generated migrations', async () => {
  await pool.query('DROP TABLE books; DROP TABLE authors; DROP TYPE mood')
  fs.rmSync(path.join(home, 'out'), { recursive: true, force: true })
  drizzleKit('generate', 'first.js')
  await migrate(db, { migrationsFolder: path.join(home, 'out') })
  drizzleKit('generate', 'second.js')
  await migrate(db, { migrationsFolder: path.join(home, 'out') })
  equal((await pool.query('SELECT count(*)::int AS n FROM drizzle.__drizzle_migrations')).rows, [{ n: 2 }])
})
step('drop', async () => {
  await pool.query('DROP TABLE books; DROP TABLE authors; DROP TYPE mood; DROP SCHEMA drizzle CASCADE')
  equal((await pool.query("SELECT 1 FROM pg_tables WHERE schemaname IN ('public', 'drizzle')")).rows, [])
})
run()
