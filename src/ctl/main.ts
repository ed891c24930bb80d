import { OutputFailed, writeError } from '../program/standard-output.ts'
import { parseCommandLine } from './command-line.ts'
import { exitCodes, Failure } from './exit-codes.ts'
import { commandTable } from './nouns.ts'
import { outputFailure } from './output.ts'
import { eachLine } from './text.ts'

/** The process edgehostctl. It loads only the code of the given command. */
async function main(): Promise<void> {
  const line = parseCommandLine(process.argv.slice(2), commandTable)
  const program = await line.command.load()
  process.exitCode = exitCodes[(await program(line, commandTable)) ?? 'ok'].code
}

main().catch((error: unknown) => {
  const failure = error instanceof OutputFailed ? outputFailure(error) : error
  if (!(failure instanceof Failure)) throw failure
  if (failure.message !== '') writeError(`edgehostctl: ${eachLine(failure.message)}\n`)
  process.exitCode = exitCodes[failure.exitName].code
})
