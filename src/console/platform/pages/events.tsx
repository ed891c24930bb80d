import { useState } from 'preact/hooks'
import type { Event } from '../../../platform/events/schemas.ts'
import { Card, EventLine, PagedList } from '../../shared/parts.tsx'
import { usePages } from '../../shared/read.ts'
import { allOf } from '../filter.ts'
import { scoped, text } from '../platform.ts'

type Condition = readonly [path: string, value: string]

/** The newest events that fulfil some conditions; those of one severity are filtered by the platform. */
export function Events({ title, where }: { title: string; where: readonly Condition[] }) {
  const t = text.value.events
  const [severity, setSeverity] = useState<'' | Event['severity']>('')
  const chosen: readonly Condition[] = severity === '' ? where : [...where, ['severity', severity]]
  const events = usePages<Event>(scoped('/v1/events/components', { filters: allOf(chosen) }), 10_000)
  return (
    <Card
      title={title}
      icon="audit"
      aside={
        <label>
          <span class="hidden">{t.severity}</span>
          <select
            value={severity}
            onChange={(event) => setSeverity(event.currentTarget.value as typeof severity)}
          >
            <option value="">{t.all}</option>
            <option value="Warning">{t.warnings}</option>
            <option value="Error">{t.errors}</option>
          </select>
        </label>
      }
    >
      <PagedList list={events} none={<p class="dim pad">{t.none}</p>}>
        {(items) => (
          <ol class="events" aria-label={title}>
            {items.map((event) => (
              <EventLine key={event.metadata.number} event={event} />
            ))}
          </ol>
        )}
      </PagedList>
    </Card>
  )
}
