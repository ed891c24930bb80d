import { defineCommand, type Noun } from '../../../ctl/command.ts'
import { onHost, offerField } from '../../../ctl/on-host.ts'

const completes = offerField('/v1/edge-mgmt/network/changes', 'uid')

/** The commands for changes of the network of a host. */
export const networkChanges: Noun = [
  defineCommand({
    name: 'network changes',
    summary: 'List the last changes of the network, and the one that is being tried',
    load: onHost(async () => (await import('./show.ts')).listChanges),
  }),
  defineCommand({
    name: 'network confirm',
    arguments: ['UID'],
    completes,
    summary: 'Keep a change of the network that is being tried',
    details:
      'Over the network it connects anew for this: a change that touches the way to the host is confirmed on a new connection to an address that the host has now, so give that address with --host. As root on the host it always works.',
    load: onHost(async () => (await import('./show.ts')).confirmChange),
  }),
  defineCommand({
    name: 'network revert',
    arguments: ['UID'],
    completes,
    summary: 'Take a change of the network back that is being tried',
    load: onHost(async () => (await import('./show.ts')).revertChange),
  }),
]
