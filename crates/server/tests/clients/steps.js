// Steps of a client's project: each runs even if one before it failed, and the exit code tells whether all passed.
const assert = require('node:assert/strict')

const steps = []
const { PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE } = process.env

exports.equal = assert.deepEqual
exports.rejects = assert.rejects
exports.step = (name, run) => steps.push([name, run])
exports.connection = { host: PGHOST, port: Number(PGPORT), user: PGUSER, password: PGPASSWORD, database: PGDATABASE }
exports.run = async () => {
  let failed = 0
  for (const [name, run] of steps) {
    try {
      await run()
      console.log(`ok ${name}`)
    } catch (error) {
      failed++
      console.log(error.sql ?? error.query ?? '')
      console.log(error.parent?.message ?? error.cause?.message ?? '', error.stack ?? error)
      console.log(`FAILED ${name}`)
    }
  }
  process.exit(failed ? 1 : 0)
}
