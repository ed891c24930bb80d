import { offered } from '../commands/options.ts'
import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { filter, limit, yes } from '../../ctl/options.ts'

export const projects: Noun = [
  defineCommand({
    name: 'project list',
    summary: 'List the projects',
    options: { limit, filter },
    load: onHost(async () => (await import('./commands-manage.ts')).listProjects),
  }),
  defineCommand({
    name: 'project create',
    arguments: ['NAME'],
    summary: 'Make a project, and print its uid',
    load: onHost(async () => (await import('./commands-manage.ts')).createProject),
  }),
  defineCommand({
    name: 'project roles',
    arguments: ['PROJECT', 'USER', 'ROLES'],
    completes: offered.project,
    summary: 'Set the roles of a user in a project: admin, operator, viewer, several with commas, or none',
    load: onHost(async () => (await import('./commands-manage.ts')).setProjectRoles),
  }),
  defineCommand({
    name: 'project delete',
    arguments: ['PROJECT'],
    completes: offered.project,
    summary: 'Delete a project that no host is in',
    options: { yes },
    load: onHost(async () => (await import('./commands-manage.ts')).deleteProject),
  }),
]
