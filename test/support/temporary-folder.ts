import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

const prefix = 'edgehostd-test-'

/** Once a run: what the tests put into the temporary folder lies in one folder, which goes when they end. */
export function setup(): () => void {
  // Another project of this run has made it. A folder in a folder would make the paths of sockets longer than 107 bytes, unix(7).
  if (basename(tmpdir()).startsWith(prefix)) return () => undefined
  const folder = mkdtempSync(join(tmpdir(), prefix))
  // Some tests write there as other users.
  chmodSync(folder, 0o1777)
  process.env.TMPDIR = folder
  return () => {
    rmSync(folder, { recursive: true, force: true })
  }
}
