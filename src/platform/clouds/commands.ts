import { offered } from '../commands/options.ts'
import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { filter, limit, yes } from '../../ctl/options.ts'
import type { Option } from '../../ctl/options.ts'
import { project } from '../commands/options.ts'

const credentials = {
  id: { value: 'ID', summary: 'Id of an application credential.' },
  'secret-file': {
    value: 'FILE',
    summary: 'File with its secret; - is the standard input.',
    completes: 'file',
  },
} as const satisfies Readonly<Record<string, Option>>

export const clouds: Noun = [
  defineCommand({
    name: 'cloudaccount list',
    summary: 'List the accounts of the cloud; without --project, of every project',
    options: { project, limit, filter },
    load: onHost(async () => (await import('./commands-manage.ts')).listAccounts),
  }),
  defineCommand({
    name: 'cloudaccount validate',
    summary: 'Ask the cloud whether it accepts credentials; nothing is kept',
    options: { project, ...credentials },
    load: onHost(async () => (await import('./commands-manage.ts')).validateAccount),
  }),
  defineCommand({
    name: 'cloudaccount create',
    arguments: ['NAME'],
    summary: 'Keep an account whose credentials the cloud accepts; print its uid',
    details: 'Without --project it is for the whole tenant: cloud configurations of each project may use it.',
    options: { project, ...credentials },
    load: onHost(async () => (await import('./commands-manage.ts')).createAccount),
  }),
  defineCommand({
    name: 'cloudaccount delete',
    arguments: ['ACCOUNT'],
    completes: offered.account,
    summary: 'Delete an account that no cloud configuration uses',
    options: { project, yes },
    load: onHost(async () => (await import('./commands-manage.ts')).deleteAccount),
  }),
  defineCommand({
    name: 'cloudconfig list',
    summary: 'List the cloud configurations; without --project, of every project',
    options: { project, limit, filter },
    load: onHost(async () => (await import('./commands-manage.ts')).listConfigs),
  }),
  defineCommand({
    name: 'cloudconfig create',
    arguments: ['NAME'],
    summary: 'Name pools of servers of an account; print the uid',
    details:
      'For example --pool workers=cluster=line-4,role=worker: a server is in a pool when it has all its tags.',
    options: {
      project,
      account: {
        value: 'ACCOUNT',
        summary: 'An account of the project or of the tenant, by its name or uid.',
      },
      pool: {
        value: 'NAME=TAG,…',
        summary: 'A pool: its name, and the tags that its servers have; once for each pool.',
        isList: true,
      },
    },
    load: onHost(async () => (await import('./commands-manage.ts')).createConfig),
  }),
  defineCommand({
    name: 'cloudconfig machines',
    arguments: ['CONFIG', 'POOL'],
    completes: offered.config,
    summary: 'List the servers of a pool',
    options: { project, limit, filter },
    load: onHost(async () => (await import('./commands-manage.ts')).listMachines),
  }),
  defineCommand({
    name: 'cloudconfig delete',
    arguments: ['CONFIG'],
    completes: offered.config,
    summary: 'Delete a cloud configuration; nothing changes in the cloud',
    options: { project, yes },
    load: onHost(async () => (await import('./commands-manage.ts')).deleteConfig),
  }),
]
