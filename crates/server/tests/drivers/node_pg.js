// node-postgres: values, prepared statements, errors, the catalog.
const assert = require('assert')
const { Client } = require('pg')

async function main() {
  const client = new Client({ host: '127.0.0.1', port: +process.argv[2], user: 'ann', database: 'atoll' })
  await client.connect()
  await client.query('CREATE TABLE n (a INT PRIMARY KEY, b TEXT, c TIMESTAMPTZ, d JSON, e INT[])')
  const at = new Date('2024-02-29T01:02:03Z')
  await client.query('INSERT INTO n VALUES ($1, $2, $3, $4, $5)', [1, 'x', at, { k: [1] }, [1, 2]])
  const { rows } = await client.query({ name: 'one', text: 'SELECT * FROM n WHERE a = $1', values: [1] })
  assert.strictEqual(rows[0].b, 'x')
  assert.strictEqual(rows[0].c.getTime(), at.getTime())
  assert.deepStrictEqual(rows[0].e, [1, 2])
  const found = await client.query("SELECT oid, relname FROM pg_class WHERE oid = 'n'::regclass")
  assert.strictEqual(typeof found.rows[0].oid, 'number')
  await assert.rejects(client.query('SELECT nothing'), { code: '42703' })
  await assert.rejects(client.query('INSERT INTO n (a) VALUES (1)'), { code: '23505', constraint: 'n_pkey', table: 'n' })
  await client.end()
}

main().catch((error) => { console.error(error); process.exit(1) })
