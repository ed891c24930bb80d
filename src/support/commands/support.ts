import { defineCommand, type Noun } from '../../ctl/command.ts'
import { file } from '../../ctl/options.ts'

export const support: Noun = [
  defineCommand({
    name: 'support',
    summary: 'Everything that helps to understand this host in one archive, secrets masked',
    details:
      'Configuration, journal, unit state, facts, metrics, versions, database statistics and the head of the audit trail, as a .tar.zst for root only to read. Needs root, but no running daemon; what could not be read is listed. The last 20000 lines of the journal.',
    options: { file },
    load: async () => (await import('./collect-support.ts')).collectSupport,
  }),
]
