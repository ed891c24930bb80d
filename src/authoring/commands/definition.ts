import { defineCommand, type Noun } from '../../ctl/command.ts'
import { file, name } from '../../ctl/options.ts'

const load = async () => (await import('../../ctl/become.ts')).handOver

/** Commands that work on files and need no host. */
export const definition: Noun = [
  defineCommand({
    name: 'definition build',
    summary: 'Pack exported profiles and packs into a definition archive',
    details:
      'Needs no host. --output FILE, with a name that ends in .tgz or .tar.zst, means the same as --file FILE; the name decides the compression. The same files give the same bytes.',
    options: {
      profile: {
        value: 'FILE...',
        summary: 'Cluster profiles as the platform exports them, JSON or YAML.',
        isList: true,
        completes: 'file',
      },
      pack: {
        value: 'DIR...',
        summary: 'Folders, each a pack with a pack.json, or a folder of packs.',
        isList: true,
        completes: 'file',
      },
      preset: {
        value: 'PACK:NAME...',
        summary: 'Presets of packs, each applied to the values that the profiles give the pack.',
        isList: true,
      },
      file,
      name,
      release: {
        value: 'VERSION',
        summary: 'Version of the definition; by default the one of its infrastructure profile.',
      },
    },
    archive: ['.tar.gz', '.tgz', '.tar.zst'],
    load,
  }),
  defineCommand({
    name: 'definition inspect',
    arguments: ['FILE'],
    summary: 'Show the contents of a definition archive: profiles, packs, images, variables',
    details:
      'Needs no host. Every sum in the archive is checked; sensitive defaults are masked. Images are those that packs list and manifests name. Images found only in values of charts or in templates are marked as guessed.',
    completes: 'file',
    load,
  }),
  defineCommand({
    name: 'definition validate',
    arguments: ['FILE'],
    summary: 'Show every problem of a definition archive, with its place',
    details: 'Needs no host. The exit code is 1 if there is an error; with warnings alone it is 0.',
    completes: 'file',
    load,
  }),
]
