import { offered } from '../commands/options.ts'
import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { filter, limit, yes } from '../../ctl/options.ts'
import { project } from '../commands/options.ts'

export const profiles: Noun = [
  defineCommand({
    name: 'profile list',
    summary: 'List the cluster profiles; without --project, of every project',
    details: 'For example --filter status.isPublished=true.',
    options: { project, limit, filter },
    load: onHost(async () => (await import('./commands-manage.ts')).listProfiles),
  }),
  defineCommand({
    name: 'profile show',
    arguments: ['PROFILE'],
    completes: offered.profile,
    summary: 'Show a cluster profile, named by NAME, NAME@VERSION or its uid',
    options: { project },
    load: onHost(async () => (await import('./commands-manage.ts')).showProfile),
  }),
  defineCommand({
    name: 'profile import',
    arguments: ['FILE'],
    summary: 'Import a cluster profile as a platform exports it, JSON or YAML; print its uid',
    details:
      '- is standard input. Without --project it is for the whole tenant. A name with a version exists once; a published version never changes.',
    options: { project, publish: { summary: 'Publish the version.' } },
    completes: 'file',
    load: onHost(async () => (await import('./commands-manage.ts')).importProfile),
  }),
  defineCommand({
    name: 'profile export',
    arguments: ['PROFILE'],
    completes: offered.profile,
    summary: 'Print a cluster profile as it was imported, with its sensitive values',
    details: 'As JSON, or with --output yaml as YAML. Each export is in the audit trail.',
    options: { project },
    load: onHost(async () => (await import('./commands-manage.ts')).exportProfile),
  }),
  defineCommand({
    name: 'profile variables',
    arguments: ['PROFILE'],
    completes: offered.profile,
    summary: 'Show the variables of a cluster profile, or replace them with --set-from',
    details:
      'Sensitive values are ********; such a mask in FILE keeps the stored value. --output json prints what --set-from reads.',
    options: {
      project,
      'set-from': {
        value: 'FILE',
        summary: 'Replace all variables by the ones of this file, JSON; - is standard input.',
        completes: 'file',
      },
    },
    load: onHost(async () => (await import('./commands-manage.ts')).profileVariables),
  }),
  defineCommand({
    name: 'profile delete',
    arguments: ['PROFILE'],
    completes: offered.profile,
    summary: 'Delete a cluster profile that no cluster uses',
    options: { project, yes },
    load: onHost(async () => (await import('./commands-manage.ts')).deleteProfile),
  }),
]
