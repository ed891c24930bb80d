import { defineCommand, type Noun } from '../../ctl/command.ts'
import { offerField } from '../../ctl/names.ts'
import { onHost } from '../../ctl/on-host.ts'
import { hostSettings, yes, type Options } from '../../ctl/options.ts'

/** What `cluster diff` and `cluster apply` are about. */
const wish = {
  file: {
    value: 'DEFINITION',
    summary:
      'A definition, .tgz or .tar.zst, which is sent into the slot update of the host and stays there.',
    isOfCommand: true,
    completes: 'file',
  },
  signature: {
    value: 'FILE',
    summary: 'Detached signature of DEFINITION, for hosts that have a signing key.',
    isOfCommand: true,
    completes: 'file',
  },
  update: {
    summary: 'Take the definition in the slot update also with --set; without --set it is taken anyway.',
  },
  set: {
    value: '[PROFILE/]NAME=VALUE...',
    summary: 'Values of variables; an empty one takes the default. All others stay.',
    isList: true,
  },
  'set-file': {
    value: '[PROFILE/]NAME=FILE...',
    summary: 'The same for secrets: each file has a value; - is standard input.',
    isList: true,
    completes: 'file',
  },
} as const satisfies Options

const noWait = { summary: 'Do not show what happens until the change is good.' }

/** The commands that change a running cluster, and show how it was changed. */
export const changeCommands: Noun = [
  defineCommand({
    name: 'cluster diff',
    summary: 'Show what a change would do: packs, versions, variables, and what restarts',
    details:
      'Compares what the host runs with DEFINITION, or with the definition in its slot update, or with the change that waits; with --set alone, with other values of the present definition. Asks before it replaces a definition that waits in the slot. The exit code is 1 if the change is not possible.',
    options: {
      ...wish,
      yes: { summary: 'Do not ask before a waiting definition is replaced.', isOfCommand: true },
    },
    load: onHost(async () => (await import('./diff.ts')).diffCluster),
  }),
  defineCommand({
    name: 'cluster apply',
    summary: 'Change the cluster: show what differs, ask, and follow the change until it is good',
    details:
      'Takes the same as cluster diff. What is applied is what was shown: it is refused if another change came between. The host makes the change by itself, also after Ctrl-C, and takes it back if the cluster does not run with it; the exit code is 1 then.',
    options: {
      ...wish,
      'schedule-at': {
        value: 'TIME',
        summary: 'When the change is begun: RFC 3339, "2026-01-31 02:00" or +6h; it is not waited for.',
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
      'Shows what differs and asks. An older Kubernetes is restored from its copy, as long as that is kept; what was written to its API since is lost then, so that needs --discard-changes.',
    options: {
      'discard-changes': {
        summary: 'Lose what was written to the API of Kubernetes since the copy that is restored.',
      },
      yes,
      'no-wait': noWait,
    },
    load: onHost(async () => (await import('./rollback.ts')).rollBackCluster),
  }),
  defineCommand({
    name: 'cluster revisions',
    summary:
      'List what was accepted for the cluster, newest first, with what became of it; * is what the host is made as',
    load: onHost(async () => (await import('./revisions.ts')).listRevisions),
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
    load: onHost(async () => (await import('./settings.ts')).clusterSettings),
  }),
]
