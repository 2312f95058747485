// Sequelize: sync, sync with alter, associations, queries, transactions, its query interface, and drop.
const path = require('node:path')
const { connection, equal, rejects, run, step } = require(path.join(__dirname, '..', 'steps.js'))
const { DataTypes, Op, Sequelize } = require('sequelize')

const make = () => new Sequelize({
  dialect: 'postgres', host: connection.host, port: connection.port, username: connection.user,
  password: connection.password, database: connection.database, logging: false })
let db = make()
let Author, Book, Tag

function define(second) {
  Author = db.define('Author', {
    name: { type: DataTypes.STRING(second ? 80 : 40), allowNull: false, comment: 'in full' },
    mood: { type: DataTypes.ENUM(...(second ? ['glad', 'sad', 'calm'] : ['glad', 'sad'])), defaultValue: 'glad' },
    born: DataTypes.DATEONLY,
    ...(second ? { email: { type: DataTypes.STRING, unique: true }, score: { type: DataTypes.INTEGER, defaultValue: 7, allowNull: false } } : {}),
  }, { paranoid: true, indexes: [{ unique: true, fields: ['name'] }] })
  Book = db.define('Book', {
    id: { type: DataTypes.UUID, primaryKey: true, defaultValue: DataTypes.UUIDV4 },
    title: second ? DataTypes.TEXT : DataTypes.STRING,
    price: { type: DataTypes.DECIMAL(9, 2), defaultValue: 0 },
    pages: second ? DataTypes.BIGINT : DataTypes.INTEGER,
    data: DataTypes.JSONB, words: DataTypes.ARRAY(DataTypes.STRING), cover: DataTypes.BLOB, x: DataTypes.DOUBLE,
    hour: DataTypes.TIME, small: DataTypes.SMALLINT, ok: DataTypes.BOOLEAN,
    moods: DataTypes.ARRAY(DataTypes.STRING(5)),
  }, {
    indexes: [{ fields: ['title'] }, { fields: ['pages', { name: 'price', order: 'DESC' }], name: 'pages_price' },
      ...(second ? [{ unique: true, fields: ['title', 'small'], where: { ok: true }, name: 'ok_titles' },
        { fields: ['data'], using: 'gin', name: 'data_gin' }, { fields: [db.fn('lower', db.col('title'))], name: 'lower_title' }] : [])],
  })
  Tag = db.define('Tag', { name: { type: DataTypes.STRING, primaryKey: true } }, { timestamps: false, tableName: 'tags' })
  Author.hasMany(Book, { foreignKey: { name: 'authorId', allowNull: true }, onDelete: 'CASCADE' })
  Book.belongsTo(Author, { foreignKey: 'authorId' })
  Book.belongsToMany(Tag, { through: 'BookTags' })
  Tag.belongsToMany(Book, { through: 'BookTags' })
}
define(false)

step('sync', async () => {
  await db.authenticate()
  await db.sync({ force: true })
  await db.sync()
  equal((await db.getQueryInterface().showAllTables()).map(t => t.tableName ?? t).sort(), ['Authors', 'BookTags', 'Books', 'tags'])
})
step('describe', async () => {
  const t = await db.getQueryInterface().describeTable('Authors')
  equal(t.name, { type: 'CHARACTER VARYING(40)', allowNull: false, defaultValue: null, comment: 'in full', special: [], primaryKey: false })
  equal([t.mood.type, t.mood.special, t.id.primaryKey, t.born.type, t.createdAt.type], ['USER-DEFINED', ['glad', 'sad'], true, 'DATE', 'TIMESTAMP WITH TIME ZONE'])
  const i = await db.getQueryInterface().showIndex('Books')
  equal(i.map(x => x.name).sort(), ['Books_pkey', 'books_title', 'pages_price'])
  equal(i.find(x => x.name === 'pages_price').fields.map(f => [f.attribute, f.order]), [['pages', undefined], ['price', 'DESC']])
  const f = await db.getQueryInterface().getForeignKeyReferencesForTable('Books')
  equal(f.map(x => [x.columnName, x.referencedTableName, x.referencedColumnName]), [['authorId', 'Authors', 'id']])
})
step('insert', async () => {
  const [ann, bob] = await Author.bulkCreate([{ name: 'Ann', born: '1970-02-03' }, { name: 'Bob', mood: 'sad' }], { returning: true })
  const tags = await Tag.bulkCreate([{ name: 'new' }, { name: 'old' }])
  for (let i = 0; i < 10; i++) {
    const b = await Book.create({ title: `b${i}`, price: i, pages: 100 + i, data: { n: i, deep: { list: [i] } }, words: ['x', `${i}`],
      cover: Buffer.from([0, 255]), x: 1.5, hour: '03:04:05', small: i, ok: true, moods: ['p'], authorId: (i % 2 ? ann : bob).id })
    await b.addTag(tags[i % 2])
  }
  equal(await Book.count(), 10)
})
step('queries', async () => {
  const a = await Author.findAll({ include: [{ model: Book, include: Tag, where: { pages: { [Op.gt]: 105 } } }], order: ['name', [Book, 'pages', 'DESC']] })
  equal(a.map(x => x.Books.map(b => b.title)), [['b9', 'b7'], ['b8', 'b6']])
  equal(a[0].Books[0].Tags[0].name, 'old')
  equal((await Book.findAll({ where: { 'data.n': 3 } })).length, 1)
  equal((await Book.findOne({ where: { data: { n: 4 } } })).title, 'b4')
  equal((await Book.findAll({ where: { data: { [Op.contains]: { n: 4 } }, words: { [Op.overlap]: ['4'] } } })).length, 1)
  equal((await Book.findAll({ where: { words: { [Op.contains]: ['x'] }, title: { [Op.iLike]: { [Op.any]: ['B1', 'B2'] } } } })).length, 2)
  equal(await Book.findAndCountAll({ limit: 2, offset: 1, order: [['pages', 'ASC NULLS LAST']], include: Author, distinct: true }).then(r => [r.count, r.rows.length]), [10, 2])
  equal((await Book.findAll({ attributes: ['authorId', [db.fn('SUM', db.col('price')), 's']], group: 'authorId', order: ['authorId'], raw: true })).map(r => r.s), ['25.00', '20.00'])
  equal((await Author.findAll({ include: { model: Book, separate: true, limit: 2, order: ['pages'] }, order: ['id'] })).map(x => x.Books[1].title), ['b3', 'b2'])
  equal((await Author.findAll({ limit: 1, include: { model: Book, required: true, where: { small: 3 } } }))[0].name, 'Ann')
  const b = await Book.findOne({ where: { title: 'b1' } })
  equal([b.price, b.moods, b.words, b.cover.length, b.hour], ['1.00', ['p'], ['x', '1'], 2, '03:04:05'])
})
step('upsert, update, delete', async () => {
  equal((await Author.upsert({ name: 'Ann', mood: 'sad' }, { conflictFields: ['name'] }))[0].mood, 'sad')
  equal(await Author.findOrCreate({ where: { name: 'Cy' } }).then(r => r[1]), true)
  equal(await Author.findOrCreate({ where: { name: 'Cy' } }).then(r => r[1]), false)
  await Book.increment({ pages: 5 }, { where: { title: 'b1' } })
  equal((await Book.update({ x: db.literal('x * 2') }, { where: { small: [1, 2] }, returning: true }))[1].map(b => b.x), [3, 3])
  await Tag.bulkCreate([{ name: 'new' }, { name: 'rare' }], { ignoreDuplicates: true })
  await Author.destroy({ where: { name: 'Cy' } })
  equal([await Author.count(), await Author.count({ paranoid: false })], [2, 3])
  await Author.restore({ where: { name: 'Cy' } })
  equal(await Book.destroy({ where: { title: 'b9' }, limit: 1 }), 1)
})
step('transactions', async () => {
  await rejects(db.transaction(async t => { await Book.destroy({ where: {}, transaction: t }); throw new Error('no') }), /no/)
  await db.transaction({ isolationLevel: 'REPEATABLE READ' }, async t => {
    await Author.findOne({ where: { name: 'Ann' }, lock: t.LOCK.UPDATE, skipLocked: true, transaction: t })
    await Author.findOne({ where: { name: 'Ann' }, lock: { level: t.LOCK.KEY_SHARE, of: Author }, include: Book, transaction: t })
  })
  equal(await Book.count(), 9)
  await rejects(Author.create({ name: 'Ann' }), { name: 'SequelizeUniqueConstraintError', fields: { name: 'Ann' } })
  await rejects(Book.create({ title: 'x', authorId: 999 }), { name: 'SequelizeForeignKeyConstraintError', table: 'Books', index: 'Books_authorId_fkey' })
  await rejects(Author.create({}, { validate: false }), { name: 'SequelizeDatabaseError' })
})
step('sync with alter', async () => {
  await db.close()
  db = make()
  define(true)
  await db.sync({ alter: true })
  const t = await db.getQueryInterface().describeTable('Authors')
  equal([t.name.type, t.mood.special, t.score.allowNull], ['CHARACTER VARYING(80)', ['glad', 'sad', 'calm'], false])
  equal((await Author.findOne({ where: { name: 'Ann' } })).score, 7)
})
step('sync with alter again', async () => {
  await db.sync({ alter: { drop: false } })
  await Author.update({ mood: 'calm' }, { where: { name: 'Bob' } })
  await Book.create({ title: 'same', small: 1, ok: true })
  await rejects(Book.create({ title: 'same', small: 1, ok: true }), { name: 'SequelizeUniqueConstraintError' })
  await Book.create({ title: 'same', small: 1, ok: false })
})
step('the query interface', async () => {
  const q = db.getQueryInterface()
  await q.addColumn('tags', 'n', { type: DataTypes.INTEGER, defaultValue: 3 })
  await q.renameColumn('tags', 'n', 'm')
  await q.changeColumn('tags', 'm', { type: DataTypes.DOUBLE, allowNull: false, defaultValue: 4 })
  await q.addConstraint('tags', { type: 'unique', fields: ['m', 'name'], name: 'both' })
  await q.addConstraint('Books', { type: 'check', fields: ['price'], where: { price: { [Op.gte]: 0 } }, name: 'not_negative' })
  await q.addIndex('tags', ['m'], { concurrently: true, name: 'by_m' })
  await q.removeIndex('tags', 'by_m', { concurrently: true })
  equal((await q.showConstraint('tags')).map(c => c.constraintName).filter(n => !n.endsWith('not_null')).sort(), ['both', 'tags_pkey'])
  await q.removeConstraint('tags', 'both')
  await q.removeColumn('tags', 'm')
  await q.renameTable('tags', 'labels')
  await q.renameTable('labels', 'tags')
  await q.createSchema('other')
  await q.dropSchema('other')
  equal(await q.tableExists('tags'), true)
})
step('truncate and drop', async () => {
  await Author.truncate({ force: true, cascade: true, restartIdentity: true })
  equal((await Author.create({ name: 'first' })).id, 1)
  await db.drop({ cascade: true })
  equal(await db.getQueryInterface().showAllTables(), [])
})
run()
