import { program } from '../base/program.ts'
import { OutputFailed, writeError } from '../program/standard-output.ts'
import type { CommandTable } from './command.ts'
import { parseCommandLine } from './command-line.ts'
import { exitCodes, Failure } from './exit-codes.ts'
import { outputFailure } from './output.ts'
import { eachLine } from './text.ts'

/** The process of a command line. It loads only the code of the given command. */
export function runCommandLine(table: CommandTable): void {
  main(table).catch((error: unknown) => {
    const failure = error instanceof OutputFailed ? outputFailure(error) : error
    if (!(failure instanceof Failure)) throw failure
    if (failure.message !== '') writeError(`${program.ctl}: ${eachLine(failure.message)}\n`)
    process.exitCode = exitCodes[failure.exitName].code
  })
}

async function main(table: CommandTable): Promise<void> {
  const line = parseCommandLine(process.argv.slice(2), table)
  const run = await line.command.load()
  process.exitCode = exitCodes[(await run(line, table)) ?? 'ok'].code
}
