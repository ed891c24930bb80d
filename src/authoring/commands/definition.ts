import { defineCommand, type Noun } from '../../ctl/command.ts'
import { file } from '../../ctl/options.ts'

const load = async () => (await import('./hand-over.ts')).handOver

/** Commands about files, for which no host is asked. */
export const definition: Noun = [
  defineCommand({
    name: 'definition build',
    summary: 'Pack exported profiles and packs into a definition archive',
    details:
      'Needs no host. --output FILE, a name that ends in .tgz or .tar.zst, means the same as --file FILE; the name says how it is compressed. The same files give the same bytes.',
    options: {
      profile: {
        value: 'FILE...',
        summary: 'Cluster profiles as the platform exports them, JSON or YAML.',
        isList: true,
        completes: 'file',
      },
      pack: {
        value: 'DIR...',
        summary: 'Folders, each a pack with its pack.json or a folder of packs.',
        isList: true,
        completes: 'file',
      },
      preset: {
        value: 'PACK:NAME...',
        summary: 'Presets of packs, each applied to the values that the profiles give the pack.',
        isList: true,
      },
      file,
      name: {
        value: 'NAME',
        summary: 'Name of the definition; by default that of its infrastructure profile.',
      },
      release: {
        value: 'VERSION',
        summary: 'Version of the definition; by default that of its infrastructure profile.',
      },
    },
    load,
  }),
  defineCommand({
    name: 'definition inspect',
    arguments: ['FILE'],
    summary: 'What is in a definition archive: profiles, packs, images, variables',
    details:
      'Needs no host. Every sum in the archive is checked; sensitive defaults are masked. Images are those that packs list and manifests name; those that only the values of charts or lines of templates show are marked as guessed.',
    completes: 'file',
    load,
  }),
  defineCommand({
    name: 'definition validate',
    arguments: ['FILE'],
    summary: 'Every problem of a definition archive, with its place',
    details: 'Needs no host. Exit code 1 when there is an error; warnings alone are 0.',
    completes: 'file',
    load,
  }),
]
