import { useState } from 'preact/hooks'
import type { Event } from '../../../platform/events/schemas.ts'
import { day, plain, time, wordsOf } from '../../shared/format.ts'
import { Icon } from '../../shared/icon.tsx'
import { Card, Pager, Shown, type Mood } from '../../shared/parts.tsx'
import { usePages } from '../../shared/read.ts'
import { allOf } from '../filter.ts'
import { scoped, text } from '../platform.ts'

const moods: Readonly<Record<Event['severity'], Mood>> = { Normal: 'info', Warning: 'warning', Error: 'bad' }

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
      <Shown reading={events}>
        {() =>
          events.count === 0 ? (
            <p class="dim pad">{t.none}</p>
          ) : (
            <>
              <ol class="events" aria-label={title}>
                {events.items.map((event) => (
                  <Line key={event.metadata.number} event={event} />
                ))}
              </ol>
              <Pager list={events} />
            </>
          )
        }
      </Shown>
    </Card>
  )
}

function Line({ event: { metadata, severity, reason, message } }: { event: Event }) {
  const mood = moods[severity]
  return (
    <li class={mood}>
      <time dateTime={metadata.creationTimestamp} title={day(metadata.creationTimestamp)}>
        {time(metadata.creationTimestamp)}
      </time>
      {severity === 'Normal' ? <i class="dot" /> : <Icon name={mood} />}
      {severity !== 'Normal' && <span class="hidden">{severity}</span>}
      <strong>{plain(wordsOf(reason))}</strong>
      <span>{plain(message)}</span>
    </li>
  )
}
