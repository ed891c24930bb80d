import { defineCommand, type Noun } from '../../ctl/command.ts'
import { changeCommands } from './change-commands.ts'
import { onHost } from '../../ctl/on-host.ts'
import { file, filter, limit, yes } from '../../ctl/options.ts'
import { certificateCommands } from './certificate-commands.ts'

const wait = 'Show what happens, until the cluster'

/** The cluster of a host. */
export const cluster: Noun = [
  defineCommand({
    name: 'cluster create',
    arguments: ['FILE'],
    summary: 'Create the cluster of a host from a file',
    details:
      'FILE is the body of POST /v1/edge-mgmt/cluster as YAML or JSON; - is standard input. The host checks everything first and lists all problems at once. The same file again gives the same cluster.',
    options: {
      'dry-run': {
        summary: 'Only check, and show what would be done.',
        isOfCommand: true,
      },
      wait: { summary: `${wait} runs; ends with 1 when a step has failed.` },
    },
    completes: 'file',
    load: onHost(async () => (await import('./create.ts')).createCluster),
  }),
  defineCommand({
    name: 'cluster get',
    summary: 'Show the cluster: its state, its nodes, its packs, and the steps that run or have failed',
    load: onHost(async () => (await import('./get.ts')).getCluster),
  }),
  defineCommand({
    name: 'cluster events',
    summary: 'Show what happened to the cluster, newest first; the last 50 events without --limit',
    details:
      "Events of edgehostd, which stay when the cluster is deleted, and Kubernetes' own, of the last hour. For example --filter severity=Warning or --filter source.component=edgehostd.",
    options: {
      limit,
      filter,
      namespace: { value: 'NAME', summary: 'Only what is about objects in this namespace of Kubernetes.' },
    },
    load: onHost(async () => (await import('./events.ts')).listEvents),
  }),
  defineCommand({
    name: 'cluster watch',
    summary: 'Show what happens to the cluster, from its beginning on, step by step, until Ctrl-C',
    details:
      'Goes on where it was when the connection breaks or edgehostd is restarted. Ends when the cluster is deleted. -o json writes one event a line.',
    load: onHost(async () => (await import('./watch.ts')).watchCluster),
  }),
  ...changeCommands,
  defineCommand({
    name: 'cluster kubeconfig',
    summary: "Write the kubeconfig of the cluster's administrator; for administrators",
    details: 'Without --file it is written to standard output. A file gets mode 0600.',
    options: { file },
    load: onHost(async () => (await import('./kubeconfig.ts')).writeKubeconfig),
  }),
  ...certificateCommands,
  defineCommand({
    name: 'cluster delete',
    summary: 'Delete the cluster; its content stays on the host',
    options: {
      yes,
      wait: { summary: `${wait} is gone.`, isOfCommand: true },
    },
    load: onHost(async () => (await import('./delete.ts')).deleteCluster),
  }),
]
