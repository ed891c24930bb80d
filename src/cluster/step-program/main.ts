// `step.cjs` (`src/cluster/step-program`) does the work of the cluster outside of the sandbox of the daemon: `step.cjs <action>`, with the
// order as JSON on standard input, as the command of a lasting run. Each part of the room `cluster` has its table of actions
// (`actions.ts`). An action is idempotent, prints lines for operators, and ends a failure with its reason as the last line.
// `cluster/host/probe-folder.ts` tries before whether a program can be run in the state folder and an overlay be mounted there
// (`FileSystemUnusable`).

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
