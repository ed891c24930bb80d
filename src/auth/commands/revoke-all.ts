import { become, requireLocalRoot } from '../../ctl/become.ts'
import type { Program } from '../../ctl/command.ts'

/** By the daemon's own program, which knows its state folder: a daemon that runs would have to be asked with a token. */
export const revokeAll: Program = async (line) => {
  requireLocalRoot(line, { does: 'works on', reason: 'the state of the daemon is for root' })
  become('main.cjs', ['--end-sessions'])
}
