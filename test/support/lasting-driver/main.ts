// Uses lasting runs as the daemon would, for tests that end the using process: driver.cjs <keeper> <folder> units|sessions
// followed by a verb.
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createLastingRuns } from '../../../src/system/lasting/runs.ts'
import { createRunner } from '../../../src/system/runner.ts'
import { scenarios } from '../lasting-scenarios.ts'

const [keeper = '', folder = '', place, verb, name = '', ...command] = process.argv.slice(2)
const runs = createLastingRuns({
  runner: createRunner(),
  folder,
  program: keeper,
  asUnits: place === 'units',
})

const verbs: Readonly<Record<string, () => Promise<void>>> = {
  /** Starts the run unless it is known, and writes down each line once, over any number of lives of this process. */
  async watch() {
    const end = join(dirname(folder), `${name}.end`)
    // Like the daemon, it finishes its work first.
    process.on('SIGTERM', () => setTimeout(() => process.exit(0), existsSync(end) ? 0 : 8_000))
    const seen = join(dirname(folder), `${name}.seen`)
    mkdirSync(dirname(folder), { recursive: true })
    if (!(await runs.find(name)))
      await runs.start(name, command[0]!, command.slice(1), { timeoutMs: 600_000 })
    const last = existsSync(seen) ? readFileSync(seen, 'utf8').trimEnd().split('\n').at(-1)! : '0'
    const onLine = (line: string, cursor: number) => appendFileSync(seen, `${cursor} ${line}\n`)
    const how = await runs.follow(name, { since: Number.parseInt(last), onLine })
    writeFileSync(end, JSON.stringify(how))
    setInterval(() => undefined, 60_000)
  },
  async find() {
    console.log(JSON.stringify(await runs.find(name)))
  },
  async scenarios() {
    for (const [title, scenario] of Object.entries(scenarios)) {
      await scenario({ runs, folder })
      console.log(title)
    }
    console.log('all of them hold')
  },
}

verbs[verb ?? '']!().catch((error: unknown) => {
  console.error(error)
  process.exit(1)
})
