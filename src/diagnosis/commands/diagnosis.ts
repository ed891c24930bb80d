import { defineCommand, type Noun } from '../../ctl/command.ts'
import { offerField, onHost } from '../../ctl/on-host.ts'
import { file } from '../../ctl/options.ts'

/** Belongs to the noun `host`, whose other commands are in the room host. */
export const hostFiles: Noun = [
  defineCommand({
    name: 'host files list',
    summary: 'List the files of this host that may be downloaded; for administrators',
    details:
      'Whoever has a right to write there puts them into diagnosis.filesDirectory of the configuration, by default /var/log/files.',
    load: onHost(async () => (await import('./files.ts')).listFiles),
  }),
  defineCommand({
    name: 'host files get',
    arguments: ['NAME'],
    summary: 'Download a file of this host; for administrators',
    details:
      'Without --file it gets its name in the present folder. It is there when it is complete, with mode 0600.',
    options: { file },
    load: onHost(async () => (await import('./files.ts')).getFile),
  }),
]
