import type { ListResource } from '../../lists/resource.ts'
import { textColumn, type SqlField, type SqlIndexes, type SqlRow } from '../../lists/sql.ts'
import { labelFilters } from '../label-filters.ts'
import { EdgeHostDevice, EdgeHostMeta } from '../schemas/edge-hosts.ts'

// A text field of a name that a filter may name is in the index of the scope; see the migration.

/** What queries of the list of hosts may name. */
export const hostList: ListResource<SqlField> = {
  name: 'edge hosts',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': textColumn('uid'),
    'metadata.name': textColumn('name'),
    'metadata.creationTimestamp': { type: 'time', column: 'created_at' },
    'metadata.lastModifiedTimestamp': { type: 'time', column: 'modified_at' },
    'spec.device.archType': textColumn('architecture'),
    'spec.device.cpu.cores': { type: 'integer', column: 'cpu_cores' },
    'spec.device.memory.sizeInMB': { type: 'integer', column: 'memory_mb' },
    'spec.device.os.family': textColumn('os_family'),
    'spec.device.os.version': textColumn('os_version'),
    'spec.host.hostAddress': textColumn('host_address'),
    'spec.host.hostUid': textColumn('host_uid'),
    'spec.service.version': textColumn('service_version'),
    'status.health.state': textColumn('health_state'),
  },
  families: labelFilters,
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  heavy: {
    'spec.device.disks': { column: 'reported', at: '$.device.disks' },
    'spec.device.gpus': { column: 'reported', at: '$.device.gpus' },
    'spec.device.nics': { column: 'reported', at: '$.device.nics' },
  },
  item: EdgeHostDevice,
}

/** What queries of the metadata of hosts may name: the paths of the list of hosts, of what the index of the scope has. */
export const hostMetadataList: ListResource<SqlField> = {
  ...hostList,
  name: 'metadata of edge hosts',
  heavy: {},
  item: EdgeHostMeta,
}

/** All of them are in the index of the scope. */
export const metadataColumns = 'uid, name, architecture, health_state, created_at'

export const toMetadata = (row: SqlRow, isInUse: boolean): EdgeHostMeta => ({
  ...(row.architecture === '' ? {} : { archType: row.architecture as 'amd64' | 'arm64' }),
  edgeHostType: 'edge-native',
  ...(row.health_state === '' ? {} : { healthState: String(row.health_state) }),
  name: String(row.name),
  state: isInUse ? 'in-use' : 'ready',
  uid: String(row.uid),
})

/** The indexes of the table of hosts; see the migration. */
export const hostIndexes: SqlIndexes = {
  whole: 'edge_host_scope',
  unique: ['uid', 'host_uid'],
  narrow: { name: 'edge_host_name', host_address: 'edge_host_address' },
  byColumn: {
    architecture: 'edge_host_architecture',
    os_version: 'edge_host_os_version',
    memory_mb: 'edge_host_memory_mb',
    cpu_cores: 'edge_host_cpu_cores',
    service_version: 'edge_host_service_version',
    health_state: 'edge_host_health_state',
  },
}
