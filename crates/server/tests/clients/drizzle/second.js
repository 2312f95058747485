const { sql } = require('drizzle-orm')
const { bigint, boolean, check, date, index, integer, jsonb, numeric, pgEnum, pgTable, serial, text, timestamp, uniqueIndex, uuid, varchar } = require('drizzle-orm/pg-core')

exports.mood = pgEnum('mood', ['glad', 'sad', 'calm'])
exports.authors = pgTable('authors', {
  id: serial('id').primaryKey(), name: varchar('name', { length: 60 }).notNull().unique(), mood: exports.mood('mood').default('glad'),
  made: timestamp('made', { withTimezone: true }).defaultNow().notNull(), email: text('email'),
})
exports.books = pgTable('books', {
  id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(), title: varchar('title', { length: 80 }).notNull(),
  authorId: integer('author_id').references(() => exports.authors.id, { onDelete: 'set null' }), price: numeric('price', { precision: 9, scale: 2 }).default('1').notNull(),
  data: jsonb('data').default({}), words: text('words').array(), pages: bigint('pages', { mode: 'number' }).notNull(), uid: uuid('uid').defaultRandom(), day: date('day'), ok: boolean('ok').default(true),
  rating: integer('rating').default(5).notNull(),
}, t => [index('rated').on(t.rating).where(sql`ok`), check('pages_positive', sql`${t.pages} > 0`), uniqueIndex('titles').on(t.title, t.authorId)])
