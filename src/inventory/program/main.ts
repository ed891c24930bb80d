import { setPriority } from 'node:os'
import { createHostFiles } from '../../host/files.ts'
import { writeError, writeOutput } from '../../program/standard-output.ts'
import { createRunner } from '../../system/runner.ts'
import { answer, isCall, readHardware } from './read-hardware.ts'

/**
 * inventory.cjs writes the hardware of this machine as JSON. It starts itself as `inventory.cjs <call>` for each call of
 * systeminformation. It is a program of its own since it needs the devices that the sandbox of the daemon hides, and runs
 * tools that may hang.
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
  } else throw new Error(`unknown call ${call}`)
}

void main().then(
  // Ends at once, even where a call has left something running.
  () => process.exit(0),
  (error: unknown) => {
    writeError(`${(error as Error).stack}\n`)
    process.exit(1)
  },
)
