import { placeNtpServers } from '../cluster/host/ntp-servers.ts'
import { StepFailed } from '../cluster/loop/step.ts'
import { createHostFiles } from '../host/files.ts'
import { createRunner } from '../system/runner.ts'
import { VerbRefused } from '../verbs/verb.ts'
import { timeOwner } from './time.ts'

/**
 * The work of the verb `set-time-servers`; without servers those that were set are taken away.
 * @throws VerbRefused
 */
export async function placeTimeServers({
  servers,
  note,
}: {
  readonly servers: readonly string[]
  readonly note: string
}): Promise<void> {
  const work = { files: createHostFiles(), root: '/', note, runner: createRunner(), print: () => undefined }
  try {
    await placeNtpServers(work, servers, timeOwner)
  } catch (error) {
    if (error instanceof StepFailed) throw new VerbRefused(error.message)
    throw error
  }
}
