import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const fixture = (name: string) => join(import.meta.dirname, `../fixtures/inventory/${name}.json`)

/** A program in place of `inventory.cjs` that prints a text of the test, and counts its starts. */
export function playedInventory(name = 'rack-server') {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-played-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const [program, answer, starts] = ['inventory.cjs', 'answer.json', 'starts'].map((each) =>
    join(folder, each),
  ) as [string, string, string]
  writeFileSync(
    program,
    `const fs = require('node:fs')
fs.appendFileSync(${JSON.stringify(starts)}, '.')
process.stdout.write(fs.readFileSync(${JSON.stringify(answer)}))`,
  )
  writeFileSync(starts, '')
  const say = (text: string) => writeFileSync(answer, text)
  say(readFileSync(fixture(name), 'utf8'))
  return {
    program,
    say,
    /** From now on the program ends with an error. */
    fail: () => rmSync(answer),
    starts: () => readFileSync(starts, 'utf8').length,
  }
}
