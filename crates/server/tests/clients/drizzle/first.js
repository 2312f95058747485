const { relations, sql } = require('drizzle-orm')
const { bigint, boolean, check, date, index, integer, jsonb, numeric, pgEnum, pgTable, serial, text, timestamp, uniqueIndex, uuid, varchar } = require('drizzle-orm/pg-core')

exports.mood = pgEnum('mood', ['glad', 'sad'])
exports.authors = pgTable('authors', {
  id: serial('id').primaryKey(), name: varchar('name', { length: 40 }).notNull().unique(), mood: exports.mood('mood').default('glad'),
  made: timestamp('made', { withTimezone: true }).defaultNow().notNull(),
})
exports.books = pgTable('books', {
  id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(), title: varchar('title', { length: 80 }).notNull(),
  authorId: integer('author_id').references(() => exports.authors.id, { onDelete: 'cascade' }), price: numeric('price', { precision: 9, scale: 2 }).default('0'),
  data: jsonb('data').default({}), words: text('words').array(), pages: integer('pages').notNull(), uid: uuid('uid').defaultRandom(), day: date('day'), ok: boolean('ok').default(true),
}, t => [index('pages_title').on(t.pages.desc(), t.title), check('pages_positive', sql`${t.pages} > 0`), uniqueIndex('titles').on(t.title, t.authorId)])
exports.bookRelations = relations(exports.books, ({ one }) => ({ author: one(exports.authors, { fields: [exports.books.authorId], references: [exports.authors.id] }) }))
exports.authorRelations = relations(exports.authors, ({ many }) => ({ books: many(exports.books) }))
