import { setPriority } from 'node:os'
import { createHostFiles } from '../../host/files.ts'
import { writeError, writeOutput } from '../../program/standard-output.ts'
import { createRunner } from '../../system/runner.ts'
import { answer, isCall } from './calls.ts'
import { readHardware } from './read-hardware.ts'

/**
 * What this machine is made of, as JSON: inventory.cjs. Started for one call of systeminformation by itself: inventory.cjs
 * <call>. It needs the devices that the sandbox of the daemon hides, asks tools that may hang, and ends when it is done.
 */
async function main(): Promise<void> {
  const [, program = '', call] = process.argv
  if (call === undefined) {
    setPriority(19)
    writeOutput(
      JSON.stringify(await readHardware({ runner: createRunner(), files: createHostFiles(), program })),
    )
  } else if (isCall(call)) {
    writeOutput(JSON.stringify(await answer(call)))
  } else throw new Error(`there is no call ${call}`)
}

void main().then(
  // What a call has left running is not waited for.
  () => process.exit(0),
  (error: unknown) => {
    writeError(`${(error as Error).stack}\n`)
    process.exit(1)
  },
)
