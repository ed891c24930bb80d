import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'

/** Commands about the registry of a host. */
export const registry: Noun = [
  defineCommand({
    name: 'content registry show',
    summary: 'Where the registry of a host listens, and which registries its images are of',
    load: onHost(async () => (await import('./registry/show.ts')).showRegistry),
  }),
  defineCommand({
    name: 'content registry config',
    summary: 'Print the files that make a container runtime pull from the registry of a host',
    details:
      'For administrators: the files have its password. Each is printed whole, below its path; with -o json path, mode and content are fields. What is to be done beside the files is on standard error.',
    options: {
      for: {
        value: 'RUNTIME',
        choices: ['containerd', 'k3s', 'podman', 'docker'],
        summary: 'What pulls; podman is also for skopeo and Buildah.',
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
