// Runs as a process with little memory: unpacks standard input and prints the refusal, the CPU time and the memory.
import { existsSync } from 'node:fs'
import { extractDefinition } from '../../src/definition/read/read-definition.ts'
import { AppError } from '../../src/errors/app-error.ts'

const [folder = '', limits = '{}'] = process.argv.slice(2)
const start = process.cpuUsage()
const before = process.memoryUsage.rss()
let peak = before
const watch = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss())
}, 5)
const error: unknown = await extractDefinition({
  source: process.stdin,
  folder,
  limits: JSON.parse(limits) as Record<string, number>,
}).then(
  () => undefined,
  (thrown: unknown) => thrown,
)
clearInterval(watch)
const { user, system } = process.cpuUsage(start)
console.log(
  JSON.stringify({
    reason: error instanceof AppError ? error.details?.reason : String(error),
    cpuMs: Math.round((user + system) / 1_000),
    grownMiB: Math.round((Math.max(peak, process.memoryUsage.rss()) - before) / 2 ** 20),
    isLeft: existsSync(folder),
  }),
)
