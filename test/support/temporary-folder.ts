import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Once a run: what the tests put into the temporary folder lies in one folder, which goes when they end. */
export function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-test-'))
  // Some tests write there as other users.
  chmodSync(folder, 0o1777)
  process.env.TMPDIR = folder
  return () => {
    rmSync(folder, { recursive: true, force: true })
  }
}
