import { offered } from '../commands/options.ts'
import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { filter, limit, yes } from '../../ctl/options.ts'

export const users: Noun = [
  defineCommand({
    name: 'user list',
    summary: 'List the users of the platform',
    options: { limit, filter },
    load: onHost(async () => (await import('./commands-manage.ts')).listUsers),
  }),
  defineCommand({
    name: 'user create',
    arguments: ['EMAIL'],
    summary: 'Make a user, and print the link by which the user sets a password',
    details:
      'The link is valid for a day and works once. Without a role for the tenant the user has only the roles that projects give.',
    options: {
      admin: { summary: 'The same as --role=admin.' },
      role: {
        value: 'ROLE',
        choices: ['admin', 'operator', 'viewer'],
        summary: 'The role for the tenant, which counts in every project too.',
      },
      'first-name': { value: 'NAME', summary: 'The first name.' },
      'last-name': { value: 'NAME', summary: 'The last name.' },
    },
    load: onHost(async () => (await import('./commands-manage.ts')).createUser),
  }),
  defineCommand({
    name: 'user roles',
    arguments: ['USER', 'ROLES'],
    completes: offered.user,
    summary: 'Set the roles of a user for the tenant: admin, operator, viewer, several with commas, or none',
    load: onHost(async () => (await import('./commands-manage.ts')).setRoles),
  }),
  defineCommand({
    name: 'user activation',
    arguments: ['USER'],
    completes: offered.user,
    summary: 'Print a new link by which the user sets a password; an earlier link ends',
    load: onHost(async () => (await import('./commands-manage.ts')).renewLink),
  }),
  defineCommand({
    name: 'user delete',
    arguments: ['USER'],
    completes: offered.user,
    summary: 'Delete a user; its tokens end',
    options: { yes },
    load: onHost(async () => (await import('./commands-manage.ts')).deleteUser),
  }),
]
