import { become, requireLocalRoot } from '../../ctl/become.ts'
import type { Program } from '../../ctl/command.ts'

/** Runs the daemon's own program, which knows the state folder: a running daemon would require a token. */
export const revokeAll: Program = async (line) => {
  requireLocalRoot(line, { does: 'works on', reason: 'the state of the daemon is for root' })
  become('main.cjs', ['--end-sessions'])
}
