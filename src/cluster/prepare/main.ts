// `cluster/prepare` makes of a definition in a slot and of the posted values the desired state: `DesiredState`, in the folder
// `cluster/<uid>/<generation>` of the state folder. `prepare.ts` copies the archive and the details of the slot into `cluster/staging`, and
// starts the program `prepare.cjs` (`cluster/prepare`), with limits of time and memory, since a definition may come from any author. `keep`
// syncs the folder and renames it; a dry run and a refusal discard it.
//
// - `prepare-definition.ts` unpacks texts and charts, and refuses an archive that is not the examined one. If packs need charts of the content, the program ends
//   and says which; the daemon looks for them and starts it again with their files.
// - `resolve.ts` has the macros resolved by the rules of the room `definition`. `packs.ts` reads the key `pack` of values, and has the order of installation.
// - `charts.ts` and `helm.ts` find problems that helm itself finds only when it installs.
// - `manifests.ts` and `charts.ts` render with helm, in the order of installation, since a chart may ask for kinds that an earlier pack
//   adds. Manifests are stored as JSON, one object a line. `workspace.ts` reads YAML as helm does; a test compares it with a real helm.
// - `judge.ts` judges the objects of all packs together, as the API server and helm do: kinds, namespaces, names, and objects that are
//   installed twice (`judge.ts`). A sure failure is an error. Where a role of the packs allows a program to make kinds or namespaces, as
//   operators do, a missing one is a warning. `kubernetes/built-in-kinds.ts` is held to the discovery of real API servers. Of charts only
//   the first fields of most documents are read (`charts.ts`).
// - A problem is a `PreflightProblem` with the id of the pack, not an exception: all problems are reported at once. `preflight.ts` looks
//   for the images in the content.

import { text } from 'node:stream/consumers'
import { answerDaemon, yieldToOthers } from '../../program/worker.ts'
import { prepareDefinition } from './prepare-definition.ts'
import type { PrepareOrder } from './protocol.ts'

/**
 * The program with which the daemon prepares a cluster from a definition. Definitions may come from any author, and rendering one
 * takes seconds that would block the event loop of the daemon.
 */
async function main(): Promise<void> {
  yieldToOthers(5)
  // Programs that it has started end with it.
  const ended = new AbortController()
  process.once('SIGTERM', () => ended.abort())
  const order = JSON.parse(await text(process.stdin)) as PrepareOrder
  await answerDaemon(prepareDefinition(order, ended.signal))
}

void main()
