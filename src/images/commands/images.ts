import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { filter, limit } from '../../ctl/options.ts'

/** The command for all images of a host. */
export const images: Noun = [
  defineCommand({
    name: 'content images',
    summary: 'List all images on a host: in its bundles, and in containerd, Docker and Podman',
    details:
      'One line for each image, by digest, with the places that have it. HERE AGAIN says whether the content of the host has it whole, so that its registry can serve it again. Runtimes that cannot be read are named on standard error. For example --filter "locations.namespace=k8s.ioANDcanBePulledHere=false".',
    options: {
      limit,
      filter,
      refresh: {
        summary: 'Read the runtimes again first, which takes up to 5 seconds.',
        isOfCommand: true,
      },
    },
    load: onHost(async () => (await import('./list.ts')).listImages),
  }),
]
