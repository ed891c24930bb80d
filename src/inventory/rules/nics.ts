import { integerOf, known, textOf } from './clean.ts'

export interface NicSources {
  readonly name: string
  /** Files below /sys/class/net/<name>; undefined where the card does not report the value. */
  readonly address: string | undefined
  readonly speed: string | undefined
  readonly duplex: string | undefined
  /** Name of the kernel's driver. */
  readonly driver: string | undefined
  /** Output of `ethtool --driver`; undefined where it failed. */
  readonly ethtool: string | undefined
}

const duplexes = ['full', 'half'] as const

/** One network card. */
export function nicOf({ name, address, speed, duplex, driver, ethtool = '' }: NicSources) {
  const field = (label: string) => textOf(new RegExp(`^${label}: (.*)$`, 'm').exec(ethtool)?.[1])
  return {
    name,
    ...known({
      macAddr: /^00(:00)+$/.test(address?.trim() ?? '') ? undefined : textOf(address),
      driver: textOf(driver) ?? field('driver'),
      firmware: field('firmware-version'),
      busAddress: field('bus-info'),
      // -1 while there is no link.
      speedMbps: integerOf(speed),
      duplex: duplexes.find((each) => each === duplex?.trim()),
    }),
  }
}
