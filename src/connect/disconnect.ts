import { existsSync } from 'node:fs'
import { Failure } from '../ctl/exit-codes.ts'
import { placesOf } from './drop-in.ts'
import { inTurn, removeFiles } from './files.ts'
import { effectiveOf, readHost, restartDaemon, type ThisHost } from './host.ts'

export interface DisconnectOptions extends ThisHost {
  /** Asks, where the operator has not said yes already. @throws Failure without a yes */
  readonly confirm: (what: string) => void
}

/**
 * Takes this host from its platform. Its key and its uid stay in the state folder, so that the same platform knows it again; so does
 * all else on the host. It may be done again, and the daemon need not run.
 * @throws Failure, ConfigInvalid
 */
export const disconnectHost = (options: DisconnectOptions): Promise<void> =>
  inTurn(options.places, () => disconnect(options))

async function disconnect(options: DisconnectOptions): Promise<void> {
  const { places, load, say, confirm } = options
  const present = effectiveOf(await load(undefined, false))
  const left = placesOf(effectiveOf(await load({ file: places.dropIn, text: undefined }, false)))
  if (left.mode !== undefined)
    throw new Failure(
      'badConfiguration',
      `${left.mode}: sets host.mode: connected, and was not written by platform connect\nRemove this setting, and disconnect again. Nothing was changed`,
    )
  const url = present('platform.url')?.value
  if (existsSync(places.dropIn)) {
    confirm(`This host leaves the platform${typeof url === 'string' ? ` ${url}` : ''}; edgehostd restarts.`)
    await removeFiles(places)
    say(`removed: ${places.dropIn}`)
    await restartDaemon(options, 'the settings are removed')
    say(
      'This host is disconnected. Its record on the platform stays until an administrator removes it there:',
    )
    say('  edgeplatformctl host delete HOST')
  } else {
    // A disconnect that was cut off may have left files, and a daemon that does not know it yet.
    await removeFiles(places)
    const isKnown = await readHost(options.client).then(
      ({ spec }) => spec.connectionMode !== 'connected',
      () => true,
    )
    if (!isKnown) await restartDaemon(options, 'the settings are removed')
    say(isKnown ? 'This host is not connected; nothing was to be done.' : 'This host is disconnected.')
  }
  if (left.others.length > 0)
    say(`Without effect now, and not written by platform connect: ${left.others.join(', ')}`, 'warning')
}
