import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { yes } from '../../ctl/options.ts'

/** Commands about the platform that manages a host. */
export const platform: Noun = [
  defineCommand({
    name: 'platform connect',
    arguments: ['URL'],
    summary: 'Connect this host to a platform, and wait until it is connected',
    details:
      'Needs root, and a daemon that runs; refused while there is a cluster that was made here, or by another platform; one that this platform has made goes back to it. Name, route, TLS, clock and token are checked before anything is changed. Without --ca-file and --fingerprint an authority of this system, or of configuration set, has to have signed the certificate of the platform. The settings are written to config.d/50-platform.yaml, and edgehostd restarts. It may be done again, also with a new token.',
    options: {
      'token-file': {
        value: 'FILE',
        summary:
          'The registration token that edgeplatformctl token create has printed; - is standard input. Not needed where the platform knows the host by its key, as after a disconnect.',
        completes: 'file',
      },
      'ca-file': {
        value: 'FILE',
        summary:
          'Authorities, PEM, of which one has signed the certificate of the platform; they are copied.',
        completes: 'file',
      },
      proxy: {
        value: 'URL',
        summary:
          'HTTP proxy for all calls to the platform: http://HOST:PORT. Without it, that of configuration set.',
      },
    },
    load: async () => (await import('./show-link.ts')).connectPlatform,
  }),
  defineCommand({
    name: 'platform status',
    summary: 'The link of a host to its platform, and why it is down',
    details: 'Ends with 1 where the host is to be connected and is not.',
    load: onHost(async () => (await import('./show-link.ts')).showLink),
  }),
  defineCommand({
    name: 'platform disconnect',
    summary: 'Take this host from its platform; all that runs on it stays as it is',
    details:
      'Needs root. The key of the host stays, so that the same platform knows it again; its record there stays until an administrator removes it.',
    options: { yes },
    load: async () => (await import('./show-link.ts')).disconnectPlatform,
  }),
]
