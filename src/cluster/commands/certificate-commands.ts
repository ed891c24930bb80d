import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'

/** The certificates of Kubernetes. */
export const certificateCommands: Noun = [
  defineCommand({
    name: 'cluster certificates',
    arguments: ['[renew]'],
    summary: 'Show the certificates of Kubernetes: who has signed them, and when they end; or renew them',
    details:
      'The certificates of the control plane are renewed by themselves 30 days before their end. With renew they are renewed now: the API server of the cluster is away for some seconds, and workloads keep running.',
    options: {
      wait: {
        summary: 'With renew: show what happens until they are renewed; ends with 1 when a try has failed.',
        isOfCommand: true,
      },
    },
    load: onHost(async () => (await import('./certificates.ts')).certificates),
  }),
]
