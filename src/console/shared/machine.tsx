// The hardware of a host, as it says itself or has reported to the platform.
import { bytes, percent, plain } from './format.ts'
import { Table } from './table.tsx'
import { sharedText } from './texts.ts'

const gib = 1024 ** 3

/** Sizes in GiB. */
interface Partition {
  readonly mountPoint?: string
  readonly fileSystemType?: string
  readonly totalSpace?: number
  readonly freeSpace?: number
}

interface Disk {
  readonly vendor?: string
  readonly controller?: string
  readonly partitions?: readonly Partition[]
}

/** How full the file systems of the disks are. */
export function Disks({ disks }: { disks: readonly Disk[] }) {
  const t = sharedText.value.machine
  const rows = disks.flatMap(({ vendor, controller, partitions = [] }, index) =>
    partitions.map((partition) => ({
      ...partition,
      mountPoint: partition.mountPoint ?? '',
      vendor,
      controller,
      key: `${index} ${partition.mountPoint ?? ''}`,
    })),
  )
  return (
    <ul class="disks">
      {rows.map(({ key, mountPoint, totalSpace = 0, freeSpace = 0, fileSystemType, vendor, controller }) => {
        const share = totalSpace > 0 ? (totalSpace - freeSpace) / totalSpace : 0
        return (
          <li key={key}>
            <div class="row">
              <strong>{plain(mountPoint)}</strong>
              <span class="dim">
                {plain([vendor, controller, fileSystemType].filter(Boolean).join(' · '))}
              </span>
            </div>
            <meter
              min={0}
              max={1}
              low={0.8}
              high={0.9}
              optimum={0}
              value={share}
              aria-label={`${mountPoint}: ${t.used(percent(share))}`}
            >
              {percent(share)}
            </meter>
            <div class="row">
              <span>{t.used(percent(share))}</span>
              <span class="dim">{t.freeOf(bytes(freeSpace * gib), bytes(totalSpace * gib))}</span>
            </div>
          </li>
        )
      })}
    </ul>
  )
}

interface Nic {
  readonly nicName?: string
  readonly macAddr?: string
  readonly ip?: string
  readonly subnet?: string
  readonly gateway?: string
  readonly isDefault?: boolean
}

/** The interfaces with their addresses. */
export function Nics({ nics }: { nics: readonly Nic[] }) {
  const t = sharedText.value.machine
  return (
    <Table
      title={t.network}
      items={nics}
      keyOf={({ nicName = '' }) => nicName}
      columns={[
        {
          title: t.link,
          cell: ({ nicName = '', macAddr = '', isDefault }) => (
            <>
              {plain(nicName)}
              {isDefault === true && <span class="tag">{t.defaultRoute}</span>}
              <br />
              <code class="dim">{plain(macAddr)}</code>
            </>
          ),
        },
        {
          title: t.address,
          cell: ({ ip, subnet = '' }) =>
            ip === undefined || ip === '' ? (
              <span class="dim">{t.noAddress}</span>
            ) : (
              <>
                {plain(ip)}
                <br />
                <span class="dim">{plain(subnet)}</span>
              </>
            ),
        },
        { title: t.gateway, cell: ({ gateway }) => plain(gateway ?? '–') },
      ]}
    />
  )
}
