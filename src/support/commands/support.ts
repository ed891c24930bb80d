import { defineCommand, type Noun } from '../../ctl/command.ts'
import { file } from '../../ctl/options.ts'

export const support: Noun = [
  defineCommand({
    name: 'support',
    summary: 'Collect the data that helps to understand this host in one archive, with secrets masked',
    details:
      'README.txt, its first file, says what is wrong and since when. The archive contains configuration, the last 20000 lines of the journal, unit state, facts, the state of the network, metrics, versions, database statistics and the head of the audit trail; of a cluster the journal of kubelet and containerd, the output of its steps, events, pods, and the last lines of containers that do not run well. It is a .tar.zst that only root may read; with a name that ends with .tar it is not compressed. Needs root, but no running daemon; sources that could not be read are listed. With --host an administrator gets that of another host, as a .tar.',
    options: { file },
    archive: ['.tar.zst', '.tar'],
    load: async () => (await import('./collect-support.ts')).collectSupport,
  }),
]
