import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { ExamineArgs, ExamineResult } from './examine-probe.ts'
import { startProbe } from './probe.ts'
import type { Settings } from './rig.ts'
import type { Account } from './accounts.ts'
import type { ServerProcess } from './server-process.ts'
import type { UploadArgs, UploadResult } from './upload-client.ts'
import { resetPeak, readPeakMiB } from './usage.ts'

const path = '/v1/edge-mgmt/edgehosts/current/actions/upload-clusterconfig'
const client = join(import.meta.dirname, 'upload-client.ts')
const execute = promisify(execFile)

/** Uploads need an administrator; useradd(8) gives each account a group of its own name. */
export const administrator = ({ userName }: Account): Settings => ({ 'auth.adminGroups': userName })

export type Sending = Omit<UploadArgs, 'port' | 'path'>

/**
 * Sends a file to the daemon, or to the baseline that accepts every body, from a process of its own.
 * @throws Error when the answer is not 201
 */
export async function sendDefinition(
  { port }: Pick<ServerProcess, 'port'>,
  sending: Sending,
): Promise<UploadResult> {
  const args: UploadArgs = { ...sending, port, path }
  const { stdout } = await execute(process.execPath, [client, JSON.stringify(args)])
  const result = JSON.parse(stdout) as UploadResult
  if (result.status !== 201) throw new Error(`the upload answers ${result.status}: ${result.body}`)
  return result
}

/** An upload, and the peaks of resident memory during it. */
export interface WatchedUpload extends UploadResult {
  readonly daemonMiB: number
  /** Of `examine.cjs`, in which the daemon has the archive examined. */
  readonly examineMiB: number
}

/** Uploads to the daemon while another process reads the memory of `examine.cjs`. */
export async function uploadDefinition(daemon: ServerProcess, sending: Sending): Promise<WatchedUpload> {
  const { pid } = daemon
  const probe = await startProbe<ExamineResult>('examine-probe.ts', { pid } satisfies ExamineArgs)
  resetPeak(pid)
  const result = await sendDefinition(daemon, sending)
  const daemonMiB = readPeakMiB(pid)
  const { peakMiB: examineMiB } = await probe.stop()
  return { ...result, daemonMiB, examineMiB }
}
