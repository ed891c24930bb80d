import { offered } from '../commands/options.ts'
import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { file, filter, hostSettings, limit, yes, type Option } from '../../ctl/options.ts'
import { force, project } from '../commands/options.ts'

const profile: Option = {
  value: 'NAME[@VERSION]...',
  summary: 'The cluster profiles, each by its name, NAME@VERSION or uid.',
  isList: true,
}
const values = {
  set: {
    value: '[PROFILE/]NAME=VALUE...',
    summary: 'Values of variables; an empty one takes the default.',
    isList: true,
  },
  'set-file': {
    value: '[PROFILE/]NAME=FILE...',
    summary: 'The same for secrets: each file has a value; - is standard input.',
    isList: true,
    completes: 'file',
  },
} as const satisfies Record<string, Option>
/** Options of a new cluster, without a file. */
const entity = {
  project,
  name: { value: 'NAME', summary: 'Name of the cluster.' },
  'edge-host': {
    value: 'HOST',
    summary: 'The edge host, by its name or uid; the cluster is in its project.',
  },
  profile,
  ...values,
} as const satisfies Record<string, Option>
const ofEntity =
  'FILE is the body of POST /v1/spectroclusters/edge-native as YAML or JSON, for --project; - is standard input. Without FILE the options describe it, as --name line-1 --edge-host hall-b-7 --profile plant@1.2.0.'

/** Clusters on edge hosts. */
export const clusters: Noun = [
  defineCommand({
    name: 'cluster list',
    summary: 'List the clusters; without --project, of every project',
    details: 'For example --filter status.state=Error, or --filter metadata.labels.hall=3.',
    options: { project, limit, filter },
    load: onHost(async () => (await import('./commands-manage.ts')).listClusters),
  }),
  defineCommand({
    name: 'cluster show',
    arguments: ['CLUSTER'],
    completes: offered.cluster,
    summary: 'Show a cluster, by its name or uid: its desired state, and the reports of its host',
    options: { project },
    load: onHost(async () => (await import('./commands-manage.ts')).showCluster),
  }),
  defineCommand({
    name: 'cluster validate',
    arguments: ['[FILE]'],
    summary: 'Make all checks of a creation, and create nothing; ends with 1 where it is not possible',
    details: ofEntity,
    options: entity,
    completes: 'file',
    load: onHost(async () => (await import('./commands-change.ts')).validateCluster),
  }),
  defineCommand({
    name: 'cluster create',
    arguments: ['[FILE]'],
    summary: 'Create a cluster on an edge host; print its uid',
    details: `${ofEntity} A refusal lists all problems.`,
    options: entity,
    completes: 'file',
    load: onHost(async () => (await import('./commands-change.ts')).createCluster),
  }),
  defineCommand({
    name: 'cluster values',
    arguments: ['CLUSTER'],
    completes: offered.cluster,
    summary: 'Show the variables of a cluster with their values, or set some of them',
    details: 'Sensitive values are ********. Values that are not named stay.',
    options: { project, ...values },
    load: onHost(async () => (await import('./commands-change.ts')).clusterValues),
  }),
  defineCommand({
    name: 'cluster profiles',
    arguments: ['CLUSTER'],
    completes: offered.cluster,
    summary: 'Show the cluster profiles of a cluster, or replace them, for example by other versions',
    details:
      '--profile names all that the cluster shall have. Values that were given stay, also with another version of a profile.',
    options: { project, profile, ...values },
    load: onHost(async () => (await import('./commands-change.ts')).clusterProfiles),
  }),
  defineCommand({
    name: 'cluster settings',
    arguments: ['CLUSTER'],
    completes: offered.cluster,
    summary: 'Show the NTP servers and SSH keys of a cluster, or replace both as a whole',
    details:
      'Both lists are replaced: without --ntp there are no NTP servers then, and without --ssh-key no keys.',
    options: { project, ...hostSettings },
    load: onHost(async () => (await import('./commands-change.ts')).clusterSettings),
  }),
  defineCommand({
    name: 'cluster apply',
    arguments: ['CLUSTER'],
    completes: offered.cluster,
    summary: 'Have the host apply the desired state again, as after NewerOnHost or DeletedOnHost',
    details:
      'Changes made on the host are taken back. Refused where a deletion waits for the host, unless that is taken back.',
    options: {
      project,
      'cancel-deletion': {
        summary: 'Take back a deletion that the host has not started; for administrators.',
      },
      yes,
    },
    load: onHost(async () => (await import('./commands-manage.ts')).applyCluster),
  }),
  defineCommand({
    name: 'cluster watch',
    arguments: ['CLUSTER'],
    completes: offered.cluster,
    summary: 'Show the work of the host of a cluster, step by step, until the desired state is reached',
    details:
      'Ends with 0 when the last change is applied, or the cluster deleted, with 1 when the host has refused it, or waits for an operator, and with 6 when the host has not been seen for three minutes. Hosts report within a minute. -o json writes one event a line.',
    options: { project },
    load: onHost(async () => (await import('./commands-watch.ts')).watchCluster),
  }),
  defineCommand({
    name: 'cluster kubeconfig',
    arguments: ['CLUSTER'],
    completes: offered.cluster,
    summary: 'Write the kubeconfig of the administrator of Kubernetes; for administrators',
    details:
      'Without --file it is written to standard output. A file gets mode 0600. Each read is in the audit trail.',
    options: { project, file },
    load: onHost(async () => (await import('./commands-manage.ts')).clusterKubeconfig),
  }),
  defineCommand({
    name: 'cluster delete',
    arguments: ['CLUSTER'],
    completes: offered.cluster,
    summary: 'Delete a cluster; its host does, and then the platform forgets it',
    details: 'With --force the host has to be silent for an hour.',
    options: {
      project,
      force,
      yes,
    },
    load: onHost(async () => (await import('./commands-manage.ts')).deleteCluster),
  }),
]
