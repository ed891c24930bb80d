import { defineCommand, type Noun } from '../../ctl/command.ts'
import { offerField, onHost } from '../../ctl/on-host.ts'
import { filter, limit, name, yes } from '../../ctl/options.ts'

const handOver = async () => (await import('../../ctl/become.ts')).handOver

/** Commands about bundles; those that make and read the files of bundles need no host. */
export const content: Noun = [
  defineCommand({
    name: 'content build',
    summary: 'Pack images, charts, files, programs and a definition into a bundle',
    details:
      'Needs no host. --output FILE names the bundle; its ending decides the compression: .tar, .tar.gz (or .tgz) or .tar.zst. Without it the bundle is bundle-DIGEST.tar in this folder, or .tar.zst where a .tar would be larger by a tenth or more. The same content gives the same bytes, in whatever order the options are given.',
    options: {
      'oci-layout': {
        value: 'DIR...',
        summary: 'OCI image layouts; every image that their index.json lists.',
        isList: true,
        completes: 'file',
      },
      'image-archive': {
        value: 'FILE...',
        summary:
          'Archives of images, compressed or not: OCI archives, and docker-archives of docker save before version 25.',
        isList: true,
        completes: 'file',
      },
      chart: {
        value: 'FILE...',
        summary: 'Helm charts, a .tgz each, as helm package writes them.',
        isList: true,
        completes: 'file',
      },
      programs: {
        value: 'NAME=VERSION:DIR...',
        summary:
          'Folders of programs: DIR/amd64, DIR/arm64 and so on have the files of one architecture; files beside these folders are for all.',
        isList: true,
      },
      file: {
        value: 'NAME=FILE...',
        summary: 'Files, each with the name by which it is found in the bundle.',
        isList: true,
        isOfCommand: true,
        completes: 'file',
      },
      definition: {
        value: 'FILE...',
        summary: 'The cluster definition of the bundle, a .tgz or .tar.zst; at most one.',
        isList: true,
        completes: 'file',
      },
    },
    archive: ['.tar', '.tar.gz', '.tgz', '.tar.zst'],
    load: handOver,
  }),
  defineCommand({
    name: 'content inspect',
    arguments: ['FILE|DIR'],
    summary: 'Show the contents of a bundle: images, charts, files, programs, platforms, sizes, warnings',
    details:
      'Needs no host. FILE is a bundle, DIR an OCI image layout. Every blob is compared with its digest.',
    completes: 'file',
    load: handOver,
  }),
  defineCommand({
    name: 'content upload',
    arguments: ['FILE|DIR'],
    summary: 'Send a bundle to a host; the same command continues an upload that was interrupted',
    details:
      'FILE is a bundle as .tar, .tar.gz or .tar.zst, DIR an OCI image layout. Only blobs that the host does not have are sent, several at a time. Nothing is kept on this machine. With a signature of the whole file instead of its index.json the file is sent as one, which cannot be continued. -o json writes the result for programs.',
    options: {
      signature: {
        value: 'FILE',
        summary:
          'Detached signature, SHA-256, of index.json or of the file; for hosts that have a signing key.',
        completes: 'file',
      },
      name,
    },
    completes: 'file',
    load: onHost(async () => (await import('./upload/upload.ts')).uploadContent),
  }),
  defineCommand({
    name: 'content list',
    summary: 'List the bundles on a host, newest first',
    options: { limit, filter },
    load: onHost(async () => (await import('./bundles.ts')).listBundles),
  }),
  defineCommand({
    name: 'content show',
    arguments: ['UID'],
    completes: offerField('/v1/edge-mgmt/content/bundles', 'uid'),
    summary: 'Show a bundle on a host and its entries: kinds, names, tags, platforms',
    details:
      'Of several bundles with the same tag, the newest has it; the others keep their images by digest. --limit and --filter are for the entries.',
    options: { limit, filter },
    load: onHost(async () => (await import('./bundles.ts')).showBundle),
  }),
  defineCommand({
    name: 'content delete',
    arguments: ['UID'],
    completes: offerField('/v1/edge-mgmt/content/bundles', 'uid'),
    summary: 'Delete a bundle, and what no other bundle has of it',
    details:
      'Lists what goes, and asks on the terminal. A bundle that something on the host needs is not deleted.',
    options: {
      yes,
      'dry-run': { summary: 'Only say what would go.' },
    },
    load: onHost(async () => (await import('./bundles.ts')).deleteBundle),
  }),
  defineCommand({
    name: 'content usage',
    summary: 'Show the disk usage of the content of a host, and the free space',
    load: onHost(async () => (await import('./bundles.ts')).showUsage),
  }),
  defineCommand({
    name: 'content uploads',
    summary: 'List the uploads of content that are not finished',
    options: { limit, filter },
    load: onHost(async () => (await import('./bundles.ts')).listUploads),
  }),
  defineCommand({
    name: 'content discard',
    arguments: ['UID'],
    completes: offerField('/v1/edge-mgmt/content/uploads', 'uid'),
    summary: 'Throw an unfinished upload away',
    load: onHost(async () => (await import('./bundles.ts')).discardUpload),
  }),
]

/** Commands about the registry of a host. */
export const registry: Noun = [
  defineCommand({
    name: 'content registry show',
    summary: 'Show the address of the registry of a host, and the registries of its images',
    load: onHost(async () => (await import('./registry/config.ts')).showRegistry),
  }),
  defineCommand({
    name: 'content registry config',
    summary: 'Print the files that make a container runtime pull from the registry of a host',
    details:
      'For administrators: the files have its password. Each is printed whole, below its path; with -o json path, mode and content are fields. Further steps are on standard error.',
    options: {
      for: {
        value: 'RUNTIME',
        choices: ['containerd', 'k3s', 'podman', 'docker'],
        summary: 'The runtime; podman is also for skopeo and Buildah.',
      },
      address: {
        value: 'NAME',
        summary:
          'Name or IPv4 address under which the runtime reaches the registry; by default the address on which it listens.',
      },
      directory: {
        value: 'DIR',
        summary: 'Write the files below this folder instead; / puts them where they belong.',
        completes: 'file',
      },
      replace: { summary: 'Replace files that have another content.' },
    },
    load: onHost(async () => (await import('./registry/config.ts')).configureRuntime),
  }),
]
