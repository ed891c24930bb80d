import { documentPath } from '../../base/program.ts'
import { defineCommand, type Noun } from '../../ctl/command.ts'
import { file, name } from '../../ctl/options.ts'

// Of the table of images of Kubernetes; for hosts with the containerd of Debian.
export const defaultKubernetes = '1.34.4'

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
    name: 'definition init',
    arguments: ['DIR'],
    summary: 'Write a small definition that works, to begin with: a profile and five packs',
    details: `Needs no host. DIR must not be there, or be empty; all of it is written, or nothing. Each file says what it is for. See ${documentPath('first-hour.md')}.`,
    options: {
      name: { ...name, summary: 'Name of the profile; by default that of DIR.', isOfCommand: true },
      kubernetes: { value: 'VERSION', summary: `Version of Kubernetes; by default ${defaultKubernetes}.` },
    },
    completes: 'file',
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
  defineCommand({
    name: 'definition needs',
    arguments: ['FILE'],
    summary: 'List the content that a definition needs: images, charts and programs, also of Kubernetes',
    details:
      'Needs no host. FILE is a definition, or a content bundle with one. What is not needed by itself has a reason. Charts and templates are rendered with the helm in PATH and the defaults of variables; without helm, their images are guessed from values. edgehostctl cluster create --dry-run lists the same with what a host has. The exit code is 1 if parts of the definition cannot be read, so that the list may lack content.',
    options: {
      content: {
        value: 'BUNDLE...',
        summary: 'Content bundles, or folders of OCI layouts: shows what of it they have, with sizes.',
        isList: true,
        completes: 'file',
      },
      list: {
        value: 'KIND',
        choices: ['image', 'chart', 'program'],
        summary:
          'Only names, a line each: images for skopeo copy, charts as NAME:VERSION, programs as content build --programs begins.',
      },
    },
    completes: 'file',
    load,
  }),
]
