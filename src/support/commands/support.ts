import { defineCommand, type Noun } from '../../ctl/command.ts'
import { file } from '../../ctl/options.ts'

export const support: Noun = [
  defineCommand({
    name: 'support',
    summary: 'Collect the data that helps to understand this host in one archive, with secrets masked',
    details:
      'The archive contains configuration, the last 20000 lines of the journal, unit state, facts, metrics, versions, database statistics and the head of the audit trail. It is a .tar.zst that only root may read. Needs root, but no running daemon; sources that could not be read are listed.',
    options: { file },
    archive: ['.tar.zst'],
    load: async () => (await import('./collect-support.ts')).collectSupport,
  }),
]
