import { text } from 'node:stream/consumers'
import { writeOutput } from '../../program/standard-output.ts'
import { engineActions } from '../engine/actions.ts'
import { hostActions } from '../host/actions.ts'
import { packActions } from '../packs/releases.ts'
import type { StepActions } from '../loop/step.ts'
import { runAction } from '../loop/step.ts'

const actions: StepActions = { ...hostActions, ...engineActions, ...packActions }

/**
 * `step.cjs <action>` does one action of a step, with the order as JSON on standard input, which may hold secrets.
 */
async function main(): Promise<void> {
  const [, , name = ''] = process.argv
  const print = (line: string) => writeOutput(`${line}\n`)
  // Ends at once, even where an action has left something running.
  process.exit(await runAction(actions, name, await text(process.stdin), print))
}

void main()
