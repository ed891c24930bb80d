import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'

/** Proxies and authorities of a host. */
export const configuration: Noun = [
  defineCommand({
    name: 'configuration get',
    summary: 'Show the proxies and authorities of this host, and whether they are in place',
    load: onHost(async () => (await import('./proxy.ts')).getConfiguration),
  }),
  defineCommand({
    name: 'configuration set',
    arguments: ['[FILE]'],
    summary: 'Set the proxies and authorities of this host; for administrators',
    details:
      'FILE is YAML or JSON, - is standard input, and replaces all of them: httpProxy, httpsProxy, noProxy, caCerts. With options only what they name changes; none takes it away. A proxy is http:// or https://, USER@HOST:PORT; its password comes from --password-file, never from the command line, which every user of the machine can read. Containerd and the kubelet restart; pods go on. Ends with 1 where it cannot be put in place.',
    options: {
      'http-proxy': { value: 'URL', summary: 'Proxy for http: calls; none for no proxy.' },
      'https-proxy': { value: 'URL', summary: 'Proxy for https: calls; none for no proxy.' },
      'no-proxy': {
        value: 'LIST',
        summary:
          'Names, addresses and networks that need no proxy, separated by commas; none for no such list.',
      },
      'ca-file': {
        value: 'FILE',
        isList: true,
        isOfCommand: true,
        summary: 'Authorities that this host trusts, PEM, in place of the present ones; none for none.',
        completes: 'file',
      },
      'password-file': {
        value: 'FILE',
        summary:
          'A file whose first line is the password of the proxies that are given; - is standard input.',
        completes: 'file',
      },
      'dry-run': { summary: 'Only show what would change and restart.', isOfCommand: true },
    },
    load: onHost(async () => (await import('./proxy.ts')).setConfiguration),
  }),
]
