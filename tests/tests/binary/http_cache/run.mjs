// Runs the client of http-cache-tests against a cache, and writes each result as a line of three columns that
// are separated by tabs: the name of the test, its kind, and its result with the reason.
//
// Usage: node run.mjs PACKAGE-FOLDER BASE-URL

import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [folder, base] = process.argv.slice(2)
const from = file => import(pathToFileURL(join(folder, file)))
const { runTests, getResults } = await from('client/runner.mjs')
const [most, surrogate] = [await from('tests/index.mjs'), await from('tests/surrogate-control.mjs')]
const suites = [...most.default, surrogate.default]
const fetch = createRequire(pathToFileURL(join(folder, 'cli.mjs')))('node-fetch')

// Most tests pause for three seconds, once. All at the same time take little more than that.
const AT_ONCE = 1000
await runTests(suites, fetch, false, base, AT_ONCE)
const results = getResults()
const tests = new Map(suites.flatMap(suite => suite.tests).map(test => [test.id, test]))

// A test is of no worth if one that it depends on has failed, or if what it builds on did not happen.
function outcome (id) {
  const result = results[id]
  if (result === undefined) return 'not-run'
  const failed = (tests.get(id).depends_on ?? []).find(other => outcome(other) !== 'pass')
  if (failed) return `dependency ${failed}`
  if (result === true) return 'pass'
  const [name, message] = result
  if (name === 'Setup') return `setup ${message}`
  return name === 'Assertion' ? `fail ${message}` : `harness ${name}: ${message}`
}

for (const [id, test] of tests) {
  console.log([id, test.kind ?? 'required', outcome(id)].join('\t'))
}
