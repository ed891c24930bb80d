import { offered } from '../commands/options.ts'
import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { filter, limit, yes } from '../../ctl/options.ts'
import { project } from '../commands/options.ts'

export const packs: Noun = [
  defineCommand({
    name: 'pack list',
    summary: 'List the packs; without --project, of every project',
    details: 'For example --filter spec.layer=addon, or --filter spec.name=web.',
    options: { project, limit, filter },
    load: onHost(async () => (await import('./commands-manage.ts')).listPacks),
  }),
  defineCommand({
    name: 'pack show',
    arguments: ['PACK'],
    completes: offered.pack,
    summary: 'Show a pack, named by NAME, NAME@VERSION or its uid',
    options: { project },
    load: onHost(async () => (await import('./commands-manage.ts')).showPack),
  }),
  defineCommand({
    name: 'pack upload',
    arguments: ['FOLDER'],
    summary: 'Upload a pack: its folder, or an archive of it (.tar, .tar.gz, .tar.zst); print its uid',
    details:
      'Without --project it is for the whole tenant: profiles of each project may use it. A name with a version exists once.',
    options: { project },
    completes: 'file',
    load: onHost(async () => (await import('./commands-manage.ts')).uploadPack),
  }),
  defineCommand({
    name: 'pack delete',
    arguments: ['PACK'],
    completes: offered.pack,
    summary: 'Delete a pack that no profile and no cluster uses',
    options: { project, yes },
    load: onHost(async () => (await import('./commands-manage.ts')).deletePack),
  }),
]
