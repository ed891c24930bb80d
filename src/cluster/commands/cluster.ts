import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost, offerField } from '../../ctl/on-host.ts'
import { hostSettings, yes, type Option, type Options, file, filter, limit } from '../../ctl/options.ts'

/** The certificates of Kubernetes. */
const certificateCommands: Noun = [
  defineCommand({
    name: 'cluster certificates',
    arguments: ['[renew]'],
    summary: 'Show the certificates of Kubernetes with issuers and expiry times; or renew them',
    details:
      'The certificates of the control plane are renewed by themselves 30 days before their end. With renew they are renewed now: the API server of the cluster is away for some seconds, and workloads keep running.',
    options: {
      wait: {
        summary: 'With renew: show events until they are renewed; ends with 1 when a try has failed.',
        isOfCommand: true,
      },
    },
    load: onHost(async () => (await import('./certificates.ts')).certificates),
  }),
]

const definition = {
  value: 'FILE',
  summary: 'The definition, .tgz or .tar.zst, which is sent into a slot of the host and stays there.',
  isOfCommand: true,
  completes: 'file',
} as const satisfies Option
const signature = {
  value: 'FILE',
  summary: 'Detached signature of the definition, for hosts that have a signing key.',
  isOfCommand: true,
  completes: 'file',
} as const satisfies Option
const ofReplacement = {
  summary: 'Do not ask before a definition that waits on the host is replaced.',
  isOfCommand: true,
} as const satisfies Option
const values = {
  set: {
    value: '[PROFILE/]NAME=VALUE...',
    summary: 'Values of variables; an empty one takes the default. Those that are not named stay.',
    isList: true,
  },
  'set-file': {
    value: '[PROFILE/]NAME=FILE...',
    summary: 'The same for secrets: each file has a value; - is standard input.',
    isList: true,
    completes: 'file',
  },
} as const satisfies Options

/** Options of `cluster diff` and `cluster apply`. */
const request = {
  definition,
  file: { value: 'FILE', summary: 'The former name of --definition.', isOfCommand: true, completes: 'file' },
  signature,
  update: {
    summary: 'Take the definition in the slot update also with --set; without --set it is taken anyway.',
  },
  ...values,
} as const satisfies Options

const noWait = { summary: 'Do not show events until the change is good.' }

/** The commands that change a running cluster, and show how it was changed. */
const changeCommands: Noun = [
  defineCommand({
    name: 'cluster diff',
    summary: 'Show what a change would do: packs, versions, variables, and what restarts',
    details:
      'Compares what the host runs with the definition of --definition, or with the definition in its slot update, or with the change that waits; with --set alone, with other values of the present definition. Asks before it replaces a definition that waits in the slot. The exit code is 1 if the change is not possible.',
    options: { ...request, yes: ofReplacement },
    load: onHost(async () => (await import('./apply.ts')).diffCluster),
  }),
  defineCommand({
    name: 'cluster apply',
    summary: 'Change the cluster: show what differs, ask, and follow the change until it is good',
    details:
      'Takes the same as cluster diff. What is applied is what was shown: it is refused if another change came between. The host makes the change by itself, also after Ctrl-C, and takes it back if the cluster does not run with it; the exit code is 1 then.',
    options: {
      ...request,
      'schedule-at': {
        value: 'TIME',
        summary: 'Start time of the change: RFC 3339, "2026-01-31 02:00" or +6h; it is not waited for.',
      },
      yes,
      'no-wait': noWait,
    },
    load: onHost(async () => (await import('./apply.ts')).applyChange),
  }),
  defineCommand({
    name: 'cluster rollback',
    arguments: ['[REVISION]'],
    completes: offerField('/v1/edge-mgmt/cluster/revisions', 'revision'),
    summary: 'Apply an earlier revision again; without REVISION the last good one before the present one',
    details:
      'Shows what differs and asks. An older Kubernetes is restored from its copy, as long as that is kept; later writes to its API are lost then, so that needs --discard-changes.',
    options: {
      'discard-changes': {
        summary: 'Lose writes to the API of Kubernetes since the copy that is restored.',
      },
      yes,
      'no-wait': noWait,
    },
    load: onHost(async () => (await import('./apply.ts')).rollBackCluster),
  }),
  defineCommand({
    name: 'cluster revisions',
    summary:
      'List the accepted revisions of the cluster, newest first, with their outcomes; * is the applied one',
    load: onHost(async () => (await import('./apply.ts')).listRevisions),
  }),
  defineCommand({
    name: 'cluster settings',
    summary: 'Show the NTP servers and SSH keys of the cluster, or replace both as a whole',
    details:
      'Both lists are replaced: without --ntp there are no NTP servers then, and without --ssh-key no keys. Shows what differs and asks.',
    options: {
      ...hostSettings,
      yes,
      'no-wait': noWait,
    },
    load: onHost(async () => (await import('./apply.ts')).clusterSettings),
  }),
]

const wait = 'Show what happens, until the cluster'

/** The cluster of a host. */
export const cluster: Noun = [
  defineCommand({
    name: 'cluster create',
    arguments: ['[FILE]'],
    summary: 'Create the cluster of a host, of a definition and values',
    details:
      'For example --name shop --definition shop.tar.zst --set-file password=-. Without --definition the definition is taken that the host has: the one in the slot update, the uploaded one, or the one of its content. FILE instead of the options is the body of POST /v1/edge-mgmt/cluster as YAML or JSON; - is standard input. The host checks everything first and lists all problems at once. The same command again gives the same cluster.',
    options: {
      name: { value: 'NAME', summary: 'Name of the cluster.', isOfCommand: true },
      definition,
      signature,
      ...values,
      endpoint: {
        value: 'ADDRESS',
        summary: 'Address of its API: that of the host, which is the default, or a free one of its network.',
      },
      'dry-run': {
        summary: 'Only check, and show what would be done.',
        isOfCommand: true,
      },
      wait: { summary: `${wait} runs; ends with 1 when a step has failed.` },
      yes: ofReplacement,
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
    summary: 'Show the events of the cluster, newest first; the last 50 without --limit',
    details:
      "Events of edgehostd, which stay when the cluster is deleted, and Kubernetes' own, of the last hour. For example --filter severity=Warning or --filter source.component=edgehostd.",
    options: {
      limit,
      filter,
      namespace: { value: 'NAME', summary: 'Only events of objects in this namespace of Kubernetes.' },
    },
    load: onHost(async () => (await import('./get.ts')).listEvents),
  }),
  defineCommand({
    name: 'cluster watch',
    summary: 'Show the events of the cluster, from its beginning on, step by step, until Ctrl-C',
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
    load: onHost(async () => (await import('./get.ts')).writeKubeconfig),
  }),
  ...certificateCommands,
  defineCommand({
    name: 'cluster delete',
    summary: 'Delete the cluster; its content stays on the host',
    options: {
      yes,
      wait: { summary: `${wait} is gone.`, isOfCommand: true },
    },
    load: onHost(async () => (await import('./create.ts')).deleteCluster),
  }),
]
